//! Held-out perplexity by document completion.

use super::model::Lda;
use crate::infer::InferenceParams;
use latens_corpus::{Documents, WordId};
use latens_model::{TopicModel, Valid};
use rayon::prelude::*;
use std::iter::Sum;

/// How well a model predicts one half of the words of documents from the other half.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Completion {
    /// Sum of ln p(w) over the predicted words.
    pub log_prob: f64,
    /// Number of predicted words.
    pub n_tokens: usize,
}

impl Completion {
    /// exp(−log probability per token); NaN if no word was predicted.
    pub fn perplexity(&self) -> f64 {
        (-self.log_prob / self.n_tokens as f64).exp()
    }
}

impl Sum for Completion {
    fn sum<I: Iterator<Item = Completion>>(parts: I) -> Completion {
        parts.fold(Completion::default(), |sum, one| Completion {
            log_prob: sum.log_prob + one.log_prob,
            n_tokens: sum.n_tokens + one.n_tokens,
        })
    }
}

impl Lda {
    /// Measures the perplexity of held-out documents by document completion (Wallach et al. 2009): the mixture of a
    /// document is inferred from every second of its known words, and predicts the others with p(w) = Σ θ_k φ_kw. Words
    /// without a token in training are unknown. The documents must be read with the lexicon of this model.
    pub fn completion(&self, documents: &Documents, params: &Valid<InferenceParams>) -> Completion {
        let of_document = |idx: usize| self.complete(documents.get(idx).words, params);
        // Sums in the order of the documents do not depend on the number of threads.
        let found: Vec<Completion> =
            (0..documents.len()).into_par_iter().map(of_document).collect();
        found.into_iter().sum()
    }

    /// [`Lda::completion`] of a single document.
    pub fn complete(&self, words: &[WordId], params: &Valid<InferenceParams>) -> Completion {
        let known: Vec<WordId> =
            words.iter().copied().filter(|&word| self.has_tokens(word)).collect();
        let seen: Vec<WordId> = known.iter().copied().step_by(2).collect();
        let hidden: Vec<WordId> = known.iter().copied().skip(1).step_by(2).collect();
        if hidden.is_empty() {
            return Completion::default();
        }
        let mixture = self.infer_words(&seen, params).mixture;
        let prob = |word: &WordId| -> f64 {
            (0..self.n_topics()).map(|k| f64::from(mixture[k]) * self.prob(k, *word)).sum()
        };
        let log_prob = hidden.iter().map(|word| prob(word).ln()).sum();
        Completion { log_prob, n_tokens: hidden.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_corpus::Documents;
    use latens_model::{Fit, Params};

    #[test]
    fn one_topic_predicts_the_smoothed_frequencies_of_words() {
        let corpus = Documents::from_texts(["a a b", "a c"]).unwrap();
        let model = Lda::params().n_topics(1).beta(0.5).n_iterations(2).fit(&corpus).unwrap();
        let held_out = model.lexicon().documents(["c a b x a", "b", ""]);
        let found = model.completion(&held_out, &InferenceParams::default().validate().unwrap());
        // Known words: c a b a; the second and the fourth are predicted. p(a) = (3 + 0.5) / (5 + 3 × 0.5).
        assert_eq!(found.n_tokens, 2);
        assert!((found.log_prob - 2.0 * (3.5f64 / 6.5).ln()).abs() < 1e-6);
        assert!((found.perplexity() - 6.5 / 3.5).abs() < 1e-5);
    }

    #[test]
    fn two_subjects_are_predicted_better_by_two_topics_than_by_one() {
        let pets = "cat dog cat bird dog fish ".repeat(4);
        let sky = "sun moon star sun cloud star ".repeat(4);
        let corpus = Documents::from_texts([&pets, &sky, &pets, &sky]).unwrap();
        let perplexity = |n_topics| {
            let model = Lda::params().n_topics(n_topics).n_iterations(50).fit(&corpus).unwrap();
            let held_out = model.lexicon().documents([&pets, &sky]);
            let params = InferenceParams::default().validate().unwrap();
            model.completion(&held_out, &params).perplexity()
        };
        // One topic has nine words, each of two has at most five.
        assert!(perplexity(2) < 0.7 * perplexity(1));
    }
}
