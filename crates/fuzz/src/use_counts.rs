//! What the targets do with encoded text and counts.

use crate::scratch::{file, path};
use crate::use_model::use_language_model;
use crate::use_text::{check_corpus, check_documents};
use latens::corpus::{Corpus, Documents, EOS, Lexicon, Preprocessing, UNK, Vocab, VocabLimits};
use latens::counts::{Budget, LagCounts, NgramCounts};
use latens::model::Params;
use latens::ngram::{Ngram, NgramParams};

/// Opens a file as an encoded text and as counts, and uses what opens.
pub fn open_container(bytes: &[u8]) {
    let path = file("container", bytes);
    if let Ok(corpus) = Corpus::open(&path) {
        check_corpus(&corpus);
    }
    if let Ok((lexicon, documents)) = Documents::open(&path) {
        check_documents(&lexicon, &documents);
    }
    if let Ok(counts) = LagCounts::open(&path) {
        use_lag_counts(&counts);
    }
    if let Ok(counts) = NgramCounts::open(&path) {
        use_ngram_counts(&counts);
    }
}

fn use_lag_counts(counts: &LagCounts) {
    for lag in counts.lags() {
        let (rows, columns) = (lag.row_sums(), lag.column_sums());
        assert_eq!(rows.iter().sum::<u64>(), lag.total());
        assert_eq!(columns.iter().sum::<u64>(), lag.total());
        assert_eq!(lag.to_csr(|count| count as f32).n_rows(), counts.vocab().len());
    }
    let _ = LagCounts::merge(&[counts.clone(), counts.clone()], &Budget::default());
    let path = path("lag counts again");
    counts.save(&path).expect("counts that were opened can be saved");
    LagCounts::open(&path).expect("counts that were saved can be opened");
}

fn use_ngram_counts(counts: &NgramCounts) {
    let mut n_tokens = 0;
    counts.for_each(|ngram, count| {
        assert!(ngram.iter().all(|word| word.index() <= counts.n_words()));
        n_tokens += count;
    });
    assert_eq!(n_tokens, counts.n_tokens());
    let _ = NgramCounts::merge(&[counts.clone(), counts.clone()], &Budget::default());
    let path = path("n-gram counts again");
    counts.save(&path).expect("counts that were opened can be saved");
    NgramCounts::open(&path).expect("counts that were saved can be opened");
    if counts.n_words() >= 2 {
        let lexicon = lexicon(counts.n_words());
        let params = NgramParams::default().order(counts.order());
        let params = params.validate().expect("counts have an order that models have");
        if let Ok(model) = Ngram::from_counts(&params, &lexicon, counts) {
            use_language_model(&model);
        }
    }
}

/// A lexicon of generated words.
fn lexicon(n_words: usize) -> Lexicon {
    let words = (0..n_words).map(|i| match i {
        0 => UNK.to_owned(),
        1 => EOS.to_owned(),
        i => format!("word{i}"),
    });
    let vocab = Vocab::from_parts(words, vec![0; n_words]).expect("the words are different");
    let limits = VocabLimits::default();
    Lexicon::new(Preprocessing::default(), limits, vocab)
}
