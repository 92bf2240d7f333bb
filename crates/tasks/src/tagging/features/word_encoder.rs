//! Features of words, from any model.

use latens_model::FeatureRows;

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
