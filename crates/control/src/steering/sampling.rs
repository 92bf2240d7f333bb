//! Sampling.

use super::steerer::{Buffers, Generated, Steerer};
use crate::error::ControlError;
use latens_corpus::WordId;
use latens_math::{Rng, sample_log_index};
use latens_tasks::SampleOptions;

impl Steerer<'_> {
    /// Draws one text. `options` change the steered distribution of each word; their `max_words` and `keep_unk` are
    /// ignored, because they are part of the constraint.
    ///
    /// Fails if no word is left that has a positive probability under both models. This does not happen if the guide
    /// generates the text itself.
    ///
    /// # Panics
    /// If the temperature is negative.
    pub fn sample(
        &self,
        options: &SampleOptions,
        rng: &mut Rng,
    ) -> Result<Generated, ControlError> {
        assert!(options.temperature >= 0.0, "the temperature must not be negative");
        let mut options = options.clone();
        options.keep_unk = true;
        let (mut reading, mut scorer) = (self.start.clone(), self.scorer(&[]));
        let mut found = Generated { words: vec![], log_prob: 0.0 };
        let mut buffers = Buffers::default();
        loop {
            self.next_words(&reading, &mut scorer, &mut buffers);
            options.apply(&mut buffers.steered);
            if buffers.steered.iter().all(|&log_prob| log_prob == f64::NEG_INFINITY) {
                return Err(self.dead_end(&found.words, &buffers.next));
            }
            let word = WordId::from(sample_log_index(&buffers.steered, rng));
            found.log_prob += buffers.model[word.index()];
            if word == WordId::EOS {
                return Ok(found);
            }
            self.guide.read(&mut reading, word);
            scorer.iter_mut().for_each(|scorer| _ = scorer.read(word));
            found.words.push(word);
        }
    }
}
