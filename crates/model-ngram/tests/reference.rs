//! The model against KenLM (Heafield et al. 2013), on the embedded corpus.
//!
//! The expected numbers are those of KenLM 0.2.0: `lmplz -o N` on the training split, lowercased and
//! tokenized as by `Tokenize::Words`, one sentence per line; `query` on the other splits.

use latens_corpus::embedded::{self, Split};
use latens_corpus::{
    Corpus, Inputs, Lexicon, Preprocessing, Sentences, Tokenize, VocabLimits, WordId,
};
use latens_model::{Fit, LanguageModel};
use latens_model_ngram::Ngram;
use std::f64::consts::LN_10;

/// Order, number of n-grams of each order, and log10 probabilities of the validation split, of the test
/// split, and of the first sentence of the test split.
const KENLM: [(usize, &[usize], f64, f64, f64); 3] = [
    (2, &[4912, 21251], -10430.936345100403, -10485.126218795776, -49.05828094482422),
    (3, &[4912, 21251, 29453], -10394.88487625122, -10455.789991378784, -48.600257873535156),
    (
        5,
        &[4912, 21251, 29453, 29668, 28148],
        -10392.800860404968,
        -10452.928285598755,
        -48.603607177734375,
    ),
];

fn inputs(folder: &tempfile::TempDir, split: Split) -> Inputs {
    let path = folder.path().join(split.name());
    std::fs::write(&path, embedded::text(split)).unwrap();
    Inputs::new([path])
}

fn read(split: Split, lexicon: &Lexicon) -> Sentences {
    lexicon.read(&inputs(&tempfile::tempdir().unwrap(), split)).unwrap()
}

#[test]
fn probabilities_agree_with_kenlm() {
    let preprocessing = Preprocessing::default().tokenize(Tokenize::Words).lowercase(true);
    let folder = tempfile::tempdir().unwrap();
    let train = inputs(&folder, Split::Train);
    let corpus = Corpus::read(&train, &preprocessing, &VocabLimits::default()).unwrap();
    let [valid, test] = [Split::Valid, Split::Test].map(|split| read(split, &corpus.lexicon));
    assert_eq!((valid.n_tokens(), test.n_tokens()), (4191, 4210));
    let n_unknown = test.tokens().iter().filter(|&&word| word == WordId::UNK).count();
    assert_eq!(n_unknown, 380);
    for (order, n_ngrams, on_valid, on_test, on_first) in KENLM {
        let model = Ngram::params().order(order).fit(&corpus).unwrap();
        assert_eq!(model.order(), order);
        assert_eq!(model.n_ngrams(), n_ngrams);
        let log_10 = |text: &Sentences| {
            text.iter().map(|sentence| model.log_prob(sentence)).sum::<f64>() / LN_10
        };
        let first = model.log_prob(test.get(0)) / LN_10;
        for (found, expected) in
            [(log_10(&valid), on_valid), (log_10(&test), on_test), (first, on_first)]
        {
            // KenLM computes and stores probabilities as `f32`.
            assert!(
                (found - expected).abs() < 1e-6 * expected.abs(),
                "{order}: {found} {expected}"
            );
        }
    }
}
