//! The model as a language model.

use super::scorer::HmmScorer;
use super::together::log_probs;
use crate::model::Hmm;
use crate::params::Memory;
use latens_corpus::{Sentences, WordId};
use latens_model::{DeviceError, LanguageModel, Scorer};
use rayon::prelude::*;
use std::borrow::Cow;

/// Number of states of a word from which sentences are scored together: smaller blocks stay in the cache.
const MIN_STATES: usize = if cfg!(test) { 2 } else { 64 };

impl Hmm {
    /// Number of sentences to score together, if their words share blocks. Each needs a vector of states: 16 MiB in all, or
    /// 32 vectors.
    fn n_together(&self) -> Option<usize> {
        let shares = self.space.lists.is_none() && self.space.k >= MIN_STATES;
        shares.then(|| ((1 << 22) / self.space.k).clamp(32, 1024))
    }
}

impl LanguageModel for Hmm {
    fn n_words(&self) -> usize {
        self.lexicon.vocab.len()
    }

    fn scorer(&self) -> Box<dyn Scorer + '_> {
        Box::new(HmmScorer::new(self))
    }

    /// Every sentence starts from π, unless the model was trained on running text.
    fn forgets_sentences(&self) -> bool {
        self.params.memory == Memory::Reset
    }

    /// Sentences that need the same block share one matrix product, which runs on several threads.
    fn sentences_together(&self) -> usize {
        self.n_together().unwrap_or(1)
    }

    /// Scores sentences together, or computes transitions in parallel if running text cannot be split into sentences.
    fn token_log_probs(&self, text: &[WordId]) -> Vec<f64> {
        /// Number of transitions to compute at a time, 256 MiB, unless a single word needs more.
        const N_PAIRS: usize = 1 << 26;
        let mut scorer = HmmScorer::new(self);
        if self.forgets_sentences() {
            let Some(n_together) = self.n_together() else {
                return text.iter().map(|&word| scorer.read(word)).collect();
            };
            let sentences = text.split_inclusive(|&word| word == WordId::EOS);
            let sentences: Vec<&[WordId]> = sentences.collect();
            let parts = sentences.chunks(n_together);
            return parts.flat_map(|part| log_probs(self, part.iter().copied())).collect();
        }
        let n_words = (N_PAIRS / self.params.states_per_word().pow(2)).clamp(1, 256);
        let mut log_probs = Vec::with_capacity(text.len());
        for begin in (0..text.len()).step_by(n_words) {
            let places = begin..(begin + n_words).min(text.len());
            let pairs: Vec<_> = places
                .clone()
                .into_par_iter()
                .map(|at| self.pairs_of_words(text[at.checked_sub(1)?], text[at]))
                .collect();
            let words = places.zip(&pairs);
            log_probs.extend(words.map(|(at, pairs)| scorer.step(text[at], pairs.as_deref())));
        }
        log_probs
    }

    #[cfg(feature = "cuda")]
    fn log_prob_on_gpu(&self, text: &Sentences) -> Result<f64, DeviceError> {
        Ok(crate::fitted::on_gpu::log_probs::token_log_probs(self, text)?.iter().sum())
    }

    #[cfg(not(feature = "cuda"))]
    fn log_prob_on_gpu(&self, _: &Sentences) -> Result<f64, DeviceError> {
        Err(DeviceError::built_without_cuda())
    }

    #[cfg(feature = "cuda")]
    fn token_log_probs_on_gpu(&self, text: &Sentences) -> Result<Vec<f64>, DeviceError> {
        crate::fitted::on_gpu::log_probs::token_log_probs(self, text)
    }

    #[cfg(not(feature = "cuda"))]
    fn token_log_probs_on_gpu(&self, _: &Sentences) -> Result<Vec<f64>, DeviceError> {
        Err(DeviceError::built_without_cuda())
    }
}

impl Hmm {
    /// The transitions from the states of a word to those of the next one, if both can be emitted.
    fn pairs_of_words(&self, before: WordId, word: WordId) -> Option<Cow<'_, [f32]>> {
        let (before, _) = self.emitters(before)?;
        let (states, _) = self.emitters(word)?;
        Some(self.blocks.pairs(&self.space, before, states))
    }
}
