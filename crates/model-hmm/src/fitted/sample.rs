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
    pub fn sample_states(&self, n_tokens: usize, seed: u64) -> StateSample {
        let mut rng = Rng::new(seed);
        let mut draw = |weights: &[f32]| {
            let weights: Vec<f64> = weights.iter().map(|&p| f64::from(p)).collect();
            sample_index(&weights, &mut rng)
        };
        let (mut sample, mut before) = (StateSample::default(), None);
        for _ in 0..n_tokens {
            let state = match before {
                None => draw(&self.start),
                Some(state) => draw(&self.transition(state)),
            };
            let (words, weights): (Vec<WordId>, Vec<f32>) = self.emitted_by(state).unzip();
            let word = words[draw(&weights)];
            let is_over = word == WordId::EOS && self.params.memory == Memory::Reset;
            before = (!is_over).then_some(state);
            sample.states.push(state as u32);
            sample.words.push(word);
        }
        sample
    }
}
