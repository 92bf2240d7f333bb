//! The header of a model file.

use latens_corpus::{Preprocessing, VocabLimits};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The version of the format that is written, and the newest that is read.
pub(super) const FORMAT_VERSION: u32 = 1;

/// What a model file says about itself, besides its arrays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Which model it is, as the command line names it: `ngram`, `hmm` … or `checkpoint`.
    pub kind: String,
    /// The version of the file format.
    pub format_version: u32,
    /// The version of the program that wrote the file.
    pub latens_version: String,
    /// The parameters with which the model was fitted.
    pub parameters: Value,
    /// What is done to a text before its words are looked up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preprocessing: Option<Preprocessing>,
    /// Which words the vocabulary kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocab_limits: Option<VocabLimits>,
    /// Facts about the training: `tokens`, `seconds`, `seed` …
    #[serde(default)]
    pub training: Map<String, Value>,
    /// What only a checkpoint has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointHeader>,
}

/// What only a checkpoint has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckpointHeader {
    /// The kind of the model that is being fitted.
    pub of: String,
    /// A number that is the same for the same data only.
    pub data_fingerprint: u64,
    /// Where the trainer is, apart from its arrays.
    pub state: Value,
}

impl Header {
    /// A header in the current format, written by this program.
    pub(crate) fn new(kind: &str, parameters: Value) -> Header {
        Header {
            kind: kind.to_owned(),
            format_version: FORMAT_VERSION,
            latens_version: env!("CARGO_PKG_VERSION").to_owned(),
            parameters,
            preprocessing: None,
            vocab_limits: None,
            training: Map::new(),
            checkpoint: None,
        }
    }
}
