//! Training that goes on from a checkpoint: one for these parameters and this text, with any counts.
//! The input is the number of sentences done, then four bytes an n-gram: its words from last to
//! first, and its count.
#![no_main]

use latens::corpus::{Corpus, Sentences, WordId};
use latens::model::{Checkpoint, Fit, Params, data_fingerprint};
use latens::ngram::{Ngram, NgramParams};
use latens_fuzz::{lexicon, one_thread, use_language_model};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

const ORDER: usize = 3;

fuzz_target!(init: one_thread(), |data: &[u8]| {
    let Some((&n_sentences, ngrams)) = data.split_first() else { return };
    let (ngrams, _) = ngrams.as_chunks::<4>();
    let words: Vec<WordId> =
        ngrams.iter().flat_map(|ngram| &ngram[..ORDER]).map(|&id| WordId(id.into())).collect();
    let counts: Vec<u64> = ngrams.iter().map(|ngram| large(ngram[ORDER])).collect();
    let corpus = corpus();
    let params = NgramParams::default().order(ORDER);
    let valid = params.clone().validate().expect("the order is right");
    let fingerprint = data_fingerprint(&corpus.lexicon.vocab, &corpus.sentences);
    let state = json!({ "n_sentences": large(n_sentences), "n_ngrams": ngrams.len() });
    let checkpoint = Checkpoint::new(Ngram::KIND, &valid, fingerprint, &state)
        .with_array("words", &[ngrams.len(), ORDER], &words)
        .with_array("counts", &[ngrams.len()], &counts);
    if let Ok(model) = params.builder().checkpoint(&checkpoint).fit(&corpus) {
        use_language_model(&model);
    }
});

/// `a b`, `b a b`, and a sentence without words.
fn corpus() -> Corpus {
    let sentences = [&[2, 3][..], &[3, 2, 3], &[]];
    let words = |ids: &[u32]| ids.iter().map(|&id| WordId(id)).collect::<Vec<_>>();
    Corpus { lexicon: lexicon(4), sentences: Sentences::from_words(sentences.map(words)) }
}

/// A byte as a number, small or as large as can be.
fn large(byte: u8) -> u64 {
    if byte == u8::MAX { u64::MAX } else { byte.into() }
}
