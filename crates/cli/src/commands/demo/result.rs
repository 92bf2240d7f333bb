//! What a part of the demo shows.

use serde::Serialize;
use serde_json::Value;

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
