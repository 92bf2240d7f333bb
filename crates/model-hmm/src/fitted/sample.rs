//! Samples of states and words.

use crate::model::Hmm;
use crate::params::Memory;
use latens_corpus::WordId;
use latens_math::{Rng, sample_index};

/// A text that a model has generated, with its states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateSample {
    /// The state of every token.
    pub states: Vec<u32>,
    /// The words. Sentences end with `<eos>`.
    pub words: Vec<WordId>,
}

impl Hmm {
    /// Generates `n_tokens` tokens, the ends of sentences included. The last sentence may be incomplete.
    ///
    /// The text ends early in a state that has no next state or no word: a row of zeros, which training never leaves but
    /// a file from elsewhere may have.
    pub fn sample_states(&self, n_tokens: usize, seed: u64) -> StateSample {
        let mut rng = Rng::new(seed);
        let mut draw = |weights: &[f32]| {
            let weights: Vec<f64> = weights.iter().map(|&p| f64::from(p)).collect();
            weights.iter().any(|&p| p > 0.0).then(|| sample_index(&weights, &mut rng))
        };
        let (mut sample, mut before) = (StateSample::default(), None);
        for _ in 0..n_tokens {
            let state = match before {
                None => draw(&self.start),
                Some(state) => draw(&self.transition(state)),
            };
            let Some(state) = state else { break };
            let (words, weights): (Vec<WordId>, Vec<f32>) = self.emitted_by(state).unzip();
            let Some(i) = draw(&weights) else { break };
            let word = words[i];
            let is_over = word == WordId::EOS && self.params.memory == Memory::Reset;
            before = (!is_over).then_some(state);
            sample.states.push(state as u32);
            sample.words.push(word);
        }
        sample
    }
}
