//! The header of a model file.

use latens_corpus::{Cleaning, Preprocessing, VocabLimits};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The format version that is written, and the newest that can be read.
pub(super) const FORMAT_VERSION: u32 = 1;

/// The contents of a model file except its arrays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The kind of model, as on the command line: `ngram`, `hmm` … or `checkpoint`.
    pub kind: String,
    /// Version of the file format.
    pub format_version: u32,
    /// Version of latens that wrote the file.
    pub latens_version: String,
    /// Parameters of the model.
    pub parameters: Value,
    /// Preprocessing of text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preprocessing: Option<Preprocessing>,
    /// Limits on the vocabulary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocab_limits: Option<VocabLimits>,
    /// Which words of documents are left out, and which are joined to phrases. Absent if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleaning: Option<Cleaning>,
    /// Facts about the training run: `tokens`, `seed` … Files of version 0.1 also have times.
    #[serde(default)]
    pub training: Map<String, Value>,
    /// Fields specific to checkpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointHeader>,
}

/// Header fields specific to checkpoints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckpointHeader {
    /// The kind of model being trained.
    pub of: String,
    /// Hash of the training data.
    pub data_fingerprint: u64,
    /// The trainer state except its arrays.
    pub state: Value,
}

/// Whether a fact about a training run measures time: `seconds`, `seconds_per_epoch`, `tokens_per_second` …
///
/// Fitted models have such facts, model files do not: the files of equal runs are equal byte for byte.
pub fn is_timing(fact: &str) -> bool {
    fact.split('_').any(|part| part == "second" || part == "seconds")
}

impl Header {
    /// Creates a header in the current format.
    pub(crate) fn new(kind: &str, parameters: Value) -> Header {
        Header {
            kind: kind.to_owned(),
            format_version: FORMAT_VERSION,
            latens_version: env!("CARGO_PKG_VERSION").to_owned(),
            parameters,
            preprocessing: None,
            vocab_limits: None,
            cleaning: None,
            training: Map::new(),
            checkpoint: None,
        }
    }
}
