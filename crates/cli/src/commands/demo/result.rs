//! What a part of the demo shows.

use serde::Serialize;
use serde_json::Value;

/// The file of word vectors, which Gaussian LDA uses.
pub(super) const WORD2VEC_FILE: &str = "demo.word2vec";

/// A trained model: its metrics, and what a reader sees of it.
#[derive(Serialize)]
pub(super) struct ModelResult {
    pub(super) model: &'static str,
    pub(super) seconds: f64,
    pub(super) metrics: Value,
    /// Text output.
    #[serde(skip)]
    pub(super) text: String,
}
