//! Hyperparameters of word2vec.

use latens_model::{ParamError, Params, check_range};
use serde::{Deserialize, Serialize};
use std::ops::Bound::{Excluded, Unbounded};

/// Parameters of word2vec. Except for the algorithm, the defaults are those of gensim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Word2vecParams {
    /// Training objective.
    pub algorithm: Algorithm,
    /// Number of dimensions of a vector.
    pub dim: usize,
    /// Maximum number of context words on either side. The size of each window is drawn uniformly from 1 to this.
    pub window: usize,
    /// Number of negative samples per positive.
    pub n_negatives: usize,
    /// Exponent of the word counts in the distribution of negative samples.
    pub noise_power: f64,
    /// Relative frequency above which tokens of a word are randomly dropped; 0 keeps all tokens.
    pub subsample: f64,
    /// Number of passes over the training text.
    pub epochs: usize,
    /// Initial learning rate. It decreases linearly to 0.01 % of this value.
    pub learning_rate: f64,
    /// Random seed.
    pub seed: u64,
}

latens_model::setters!(Word2vecParams {
    algorithm: Algorithm,
    dim: usize,
    window: usize,
    n_negatives: usize,
    noise_power: f64,
    subsample: f64,
    epochs: usize,
    learning_rate: f64,
    seed: u64
});

/// Training objective of word2vec.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Continuous bag of words: predicts a word from the mean of its context words. Fast.
    Cbow,
    /// Predicts a word from each of its context words. Better for rare words and small corpora.
    #[default]
    SkipGram,
}

impl Default for Word2vecParams {
    fn default() -> Self {
        Word2vecParams {
            algorithm: Algorithm::default(),
            dim: 100,
            window: 5,
            n_negatives: 5,
            noise_power: 0.75,
            subsample: 1e-3,
            epochs: 5,
            learning_rate: 0.025,
            seed: 1,
        }
    }
}

impl Params for Word2vecParams {
    fn check(&self) -> Result<(), ParamError> {
        check_range("dim", self.dim, 1..=1 << 16)?;
        check_range("window", self.window, 1..=1000)?;
        check_range("n_negatives", self.n_negatives, 1..=1000)?;
        check_range("noise_power", self.noise_power, -1.0..=2.0)?;
        check_range("subsample", self.subsample, 0.0..=1.0)?;
        check_range("epochs", self.epochs, 1..=100_000)?;
        check_range("learning_rate", self.learning_rate, (Excluded(0.0), Unbounded))
    }
}
