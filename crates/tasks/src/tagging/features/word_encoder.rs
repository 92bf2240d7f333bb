//! Features of words, from any model.

use latens_model::{DeviceError, FeatureRows};
use rayon::prelude::*;

/// A model that gives features of words.
///
/// Words are passed as written. The encoder applies the preprocessing of its own training text.
pub trait WordEncoder: Send + Sync {
    /// Number of features (columns).
    fn n_features(&self) -> usize;

    /// Appends one row per word of a sentence.
    fn encode(&self, words: &[&str], out: &mut FeatureRows);

    /// The rows of each of several sentences, computed on several threads. Equals [`WordEncoder::encode`] of each sentence
    /// up to rounding. Override if many sentences are cheaper together.
    fn encode_all(&self, sentences: &[Vec<&str>]) -> Vec<FeatureRows> {
        let encode = |words: &Vec<&str>| {
            let mut rows = FeatureRows::new();
            self.encode(words, &mut rows);
            rows
        };
        sentences.par_iter().map(encode).collect()
    }

    /// The largest number of values per word that [`WordEncoder::encode_all`] keeps in memory.
    fn values_per_token(&self) -> usize {
        self.n_features()
    }

    /// The encoder on a GPU. `None` if its features are computed on the CPU only; fails if there is no GPU.
    fn on_gpu(&self) -> Option<Result<Box<dyn GpuWordEncoder + '_>, DeviceError>> {
        None
    }

    /// Whether the word is in the vocabulary of the model.
    fn knows(&self, word: &str) -> bool;
}

/// An encoder of words that computes on a GPU. It keeps the model there.
pub trait GpuWordEncoder {
    /// The rows of each of several sentences, those of [`WordEncoder::encode_all`] up to rounding.
    fn encode_all(&mut self, sentences: &[Vec<&str>]) -> Result<Vec<FeatureRows>, DeviceError>;
}
