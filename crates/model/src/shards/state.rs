use super::arrays::Arrays;
use serde_json::Value;
use std::collections::BTreeMap;

/// The state of a run between two rounds.
#[derive(Clone, Debug, Default)]
pub struct ShardState {
    /// Number of rounds of the whole run, if it is known.
    pub n_rounds: Option<u64>,
    /// Small values.
    pub progress: Value,
    /// What the last round measured, for progress reports.
    pub metrics: BTreeMap<String, f64>,
    /// Large values.
    pub arrays: Arrays,
}
