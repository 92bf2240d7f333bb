//! Encoders: models that give features of words.

use latens_model::FeatureRows;
use latens_store::FlatArray;
use serde::{Deserialize, Serialize};

/// A model that gives features of words.
///
/// Words are passed as written. The encoder applies the preprocessing of its own training text.
pub trait WordEncoder: Send + Sync {
    /// Number of features (columns).
    fn n_features(&self) -> usize;

    /// Appends one row per word of a sentence.
    fn encode(&self, words: &[&str], out: &mut FeatureRows);

    /// Whether the word is in the vocabulary of the model.
    fn knows(&self, word: &str) -> bool;
}

/// An encoder together with its model file, which is stored in the file of the tagger.
pub struct Encoder {
    /// Name for messages, usually the name of the file.
    pub name: String,
    /// Kind of features, e.g., `paths` or `posterior`.
    pub features: String,
    /// The model.
    pub model: Box<dyn WordEncoder>,
    /// Contents of the model file.
    pub file: FlatArray<u8>,
}

/// Facts about an encoder that a tagger needs, saved with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct EncoderInfo {
    pub(crate) name: String,
    pub(crate) features: String,
    pub(crate) n_features: usize,
    pub(crate) n_bytes: usize,
    /// Whether every row has a value in every column. Dense rows are standardized.
    pub(crate) is_dense: bool,
    pub(crate) scale: f64,
    /// Fraction of the tokens of the training text that the encoder knows.
    pub(crate) known: f64,
}

/// Replaces each x by (x − mean) · scale.
pub(crate) fn standardize(row: &mut [f32], means: &[f32], scale: f64) {
    row.iter_mut().zip(means).for_each(|(x, mean)| *x = (*x - mean) * scale as f32);
}
