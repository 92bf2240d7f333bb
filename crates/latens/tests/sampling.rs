//! What is drawn from a language model comes as often as the model says.

use latens::corpus::embedded::{self, Split};
use latens::corpus::{Corpus, Inputs, Preprocessing, VocabLimits, WordId};
use latens::math::Rng;
use latens::model::{Fit, LanguageModel};
use latens::neural::NeuralParams;
use latens::tasks::{SampleOptions, sample, sample_sentences};
use std::ops::ControlFlow;

/// A text of 40 different words.
fn corpus() -> Corpus {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text");
    std::fs::write(&path, embedded::text(Split::Valid)).unwrap();
    let limits = VocabLimits { max_vocab: 40, ..VocabLimits::default() };
    Corpus::read(&Inputs::new([path]), &Preprocessing::default(), &limits).unwrap()
}

fn drawn(model: &dyn LanguageModel, n: usize) -> Vec<Vec<WordId>> {
    let mut options = SampleOptions::default();
    options.max_words = 30;
    let mut sentences = Vec::new();
    let _ = sample_sentences(model, &[], &options, n, 3, |next| {
        sentences.extend(next);
        ControlFlow::<()>::Continue(())
    });
    sentences
}

#[test]
fn a_sentence_does_not_depend_on_the_number_of_sentences_and_threads() {
    let corpus = corpus();
    for params in [NeuralParams::ff(), NeuralParams::rnn(), NeuralParams::lstm()] {
        let model = params.dim(8).epochs(1).batch_size(20).fit(&corpus).unwrap();
        let all = drawn(&model, 600);
        assert_eq!(all.len(), 600);
        for (n, threads) in [(1, 1), (2, 2), (17, 3), (300, 1), (600, 3)] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert_eq!(pool.install(|| drawn(&model, n)), all[..n], "{n} with {threads} threads");
        }
    }
}

#[test]
fn first_words_are_drawn_as_often_as_they_are_likely() {
    let corpus = corpus();
    for params in [NeuralParams::ff(), NeuralParams::rnn(), NeuralParams::lstm()] {
        let params = params.dim(8).epochs(2).batch_size(20);
        let model = params.fit(&corpus).unwrap();
        let mut log_probs = vec![0.0; model.n_words()];
        model.scorer().next_log_probs(&mut log_probs);
        // The unknown word is not drawn: the others share its probability.
        let rest = 1.0 - log_probs[WordId::UNK.index()].exp();

        let (n, mut rng) = (20_000, Rng::new(1));
        let mut counts = vec![0.0; model.n_words()];
        for _ in 0..n {
            let first = sample(&model, 1, &mut rng).first().copied();
            counts[first.unwrap_or(WordId::EOS).index()] += 1.0;
        }
        assert_eq!(counts[WordId::UNK.index()], 0.0);
        let expected = log_probs.iter().map(|log_prob| n as f64 * log_prob.exp() / rest);
        let words = counts.iter().zip(expected).skip(1);
        let chi_square: f64 = words.map(|(count, mean)| (count - mean).powi(2) / mean).sum();
        // Mean and five standard deviations of χ² with one degree of freedom less than there are words.
        let freedom = (model.n_words() - 2) as f64;
        assert!(chi_square < freedom + 5.0 * (2.0 * freedom).sqrt(), "{chi_square} of {freedom}");
    }
}
