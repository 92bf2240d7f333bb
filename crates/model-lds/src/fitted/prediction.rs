//! Predicting text: the likelihood of a text, and the next word.

use crate::learn::likelihood::{Run, TextGain, warm_up};
use crate::linalg::dense::product;
use crate::model::Lds;
use latens_corpus::{Sentences, WordId};
use latens_math::Real;
use latens_math::linalg::Mat;

/// Lower bound of the factor by which the history changes the probability of a word.
const MIN_RATIO: f64 = 0.02;

impl Lds {
    /// The mean log-likelihood of the tokens of a text in nats, minus that of independent words from a Gaussian with
    /// the same covariance.
    ///
    /// Rare words dominate it. It compares models with the same vocabulary and the same `pseudo_counts`.
    pub fn gain(&self, text: &Sentences) -> f64 {
        let gain = TextGain::new(&self.dynamics, &self.steady, &self.words, &self.mu);
        let runs = Run::all(text, self.params.boundary, warm_up(&self.steady));
        gain.of(text.tokens(), &runs) / text.n_tokens().max(1) as f64
    }

    /// The probability of each word to come next: μ_i max(1 + u_i · A x, 0.02), normalized, where x is the filtered
    /// state after `words`.
    ///
    /// Without the bound these are the model's linear expectations.
    pub fn next_word_probs(&self, words: &[WordId]) -> Vec<f64> {
        let linear = self.next_word_ratios(words);
        let mut probs: Vec<f64> = linear.iter().map(|ratio| ratio.max(MIN_RATIO)).collect();
        probs.iter_mut().zip(&self.mu).for_each(|(prob, mu)| *prob *= mu);
        let sum: f64 = probs.iter().sum();
        probs.iter_mut().for_each(|prob| *prob /= sum);
        probs
    }

    /// 1 + u_i · A x: the expected probability of each word to come next, relative to μ_i.
    fn next_word_ratios(&self, words: &[WordId]) -> Vec<f64> {
        let states = self.filter(words, None);
        let dim = self.dim();
        let last = states.rows().last();
        let x = Mat::from_fn(dim, 1, |i, _| last.map_or(0.0, |x| f64::from(x[i])));
        let p = product([self.dynamics.a.as_ref(), x.as_ref()]);
        let ratio = |word: usize| {
            let row = self.words.row(word).iter().enumerate();
            1.0 + row.map(|(i, c)| c.wide() * p[(i, 0)]).sum::<f64>() / self.mu[word].sqrt()
        };
        (0..self.mu.len()).map(ratio).collect()
    }
}
