use latens_model::{ParamError, Params, check_range};
use serde::{Deserialize, Serialize};

/// Parameters of a Brown clustering.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BrownParams {
    /// How many clusters to make.
    pub n_clusters: usize,
    /// How to find them.
    pub algorithm: Algorithm,
    /// How many times [`Algorithm::Exchange`] goes through all words at most; it ends earlier when no
    /// word moves. The other algorithm has no iterations.
    pub n_iterations: usize,
}

/// How clusters are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Algorithm {
    /// The classic one: words come in by falling frequency, and the two clusters are merged that lose
    /// the least.
    #[default]
    Brown,
    /// Every word moves to the cluster where it gains most, again and again: for large vocabularies.
    Exchange,
}

impl Default for BrownParams {
    fn default() -> Self {
        BrownParams { n_clusters: 1000, algorithm: Algorithm::default(), n_iterations: 20 }
    }
}

impl Params for BrownParams {
    fn check(&self) -> Result<(), ParamError> {
        // The table of losses has the square of this many entries: 2^15 clusters need 40 GiB.
        check_range("n_clusters", self.n_clusters, 1..=1 << 15)?;
        check_range("n_iterations", self.n_iterations, 1..)
    }
}
