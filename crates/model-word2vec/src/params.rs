use latens_model::{ParamError, Params, check_range};
use serde::{Deserialize, Serialize};
use std::ops::Bound::{Excluded, Unbounded};

/// Parameters of word2vec. The defaults are those of the original program and of gensim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Word2vecParams {
    /// What is guessed from what.
    pub algorithm: Algorithm,
    /// How many numbers a vector has.
    pub dim: usize,
    /// How many words on either side are looked at, at most: for each word the number is drawn anew, from 1 on.
    pub window: usize,
    /// How many random words each right one is told from.
    pub n_negatives: usize,
    /// Random words are drawn as often as their counts to this power say.
    pub noise_power: f64,
    /// Words of a greater share of the text than this are left out now and then; 0 keeps all.
    pub subsample: f64,
    /// How often the text is gone through.
    pub epochs: usize,
    /// How far the first steps go; from there on the rate falls along a line to (almost) zero.
    pub learning_rate: f64,
    /// Where random choices begin.
    pub seed: u64,
}

/// What is guessed from what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// A word from the mean of the words around it: fast.
    Cbow,
    /// A word from each of the words around it: better for rare words and small texts.
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
