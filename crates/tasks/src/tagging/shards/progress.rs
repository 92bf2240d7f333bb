//! What all rounds of a run share.

use latens_model::FitError;
use serde::{Deserialize, Serialize};

/// The progress of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Progress {
    /// Column of the tags, counted from 0.
    pub(super) column: u32,
    pub(super) sentences: u64,
    /// Tokens of each shard, to notice a text that has changed.
    pub(super) shard_tokens: Vec<u64>,
    /// Tags that the model predicts.
    pub(super) tags: Vec<String>,
    pub(super) are_spans: bool,
    /// State of L-BFGS, without its vectors.
    pub(super) n_pairs: usize,
    pub(super) n_steps: u64,
    /// Number of points of the current step whose gradient is known.
    pub(super) n_trials: usize,
}

pub(super) fn to_json(progress: &Progress) -> serde_json::Value {
    serde_json::to_value(progress).expect("progress consists of numbers and strings")
}

/// An error for statistics or broadcasts that contradict themselves.
pub(super) fn inconsistent(problem: &str) -> FitError {
    FitError::Step { action: "use the arrays of shards", source: problem.into() }
}
