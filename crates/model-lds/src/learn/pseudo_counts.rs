use crate::params::LdsParams;
use latens_counts::LagCounts;

/// The number added to the count of every word.
pub(crate) struct PseudoCounts {
    pub(crate) used: f64,
    /// Whether `used` is larger than the value of the parameter.
    pub(crate) is_raised: bool,
}

/// Words with at least this count need no pseudo-counts.
pub(crate) const FREQUENT: u64 = 50;

impl PseudoCounts {
    /// Without pseudo-counts, two words that occur once, one after the other, have a correlation of 1. Such a model
    /// does not generalize, and its covariances are singular.
    pub(crate) fn choose(params: &LdsParams, counts: &LagCounts) -> PseudoCounts {
        let default = 0.2 * counts.n_tokens() as f64 / counts.unigrams().len() as f64;
        let default = if default < 1.0 { 1.0 } else { default.round() };
        let requested = params.pseudo_counts.unwrap_or(default);
        let has_rare = counts.unigrams().iter().any(|&count| count < FREQUENT);
        let is_raised = has_rare && requested < 1.0;
        PseudoCounts { used: if is_raised { 1.0 } else { requested }, is_raised }
    }
}
