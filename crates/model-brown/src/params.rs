use latens_model::{ParamError, Params, check_range};
use serde::{Deserialize, Serialize};

/// Parameters of a Brown clustering.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct BrownParams {
    /// Number of clusters.
    pub n_clusters: usize,
    /// Clustering algorithm.
    pub algorithm: Algorithm,
    /// Maximum number of passes over all words of [`Algorithm::Exchange`], which stops earlier when no word moves.
    /// [`Algorithm::Brown`] ignores it.
    pub n_iterations: usize,
}

latens_model::setters!(BrownParams {
    n_clusters: usize,
    algorithm: Algorithm,
    n_iterations: usize
});

/// A clustering algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Algorithm {
    /// The original greedy algorithm: inserts words by descending frequency, and merges the two clusters with the
    /// smallest loss.
    #[default]
    Brown,
    /// Repeatedly moves every word to the cluster with the largest gain. Suits large vocabularies.
    Exchange,
}

impl Default for BrownParams {
    fn default() -> Self {
        BrownParams { n_clusters: 1000, algorithm: Algorithm::default(), n_iterations: 20 }
    }
}

impl Params for BrownParams {
    fn check(&self) -> Result<(), ParamError> {
        // Tables are quadratic in the number of clusters: 2^15 clusters need 40 GiB.
        check_range("n_clusters", self.n_clusters, 1..=1 << 15)?;
        check_range("n_iterations", self.n_iterations, 1..)
    }
}
