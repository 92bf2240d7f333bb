use latens_model::{ParamError, Params, check_range};
use serde::{Deserialize, Serialize};

/// Parameters of a Brown clustering.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BrownParams {
    /// How many clusters to make.
    pub n_clusters: usize,
}

impl Default for BrownParams {
    fn default() -> Self {
        BrownParams { n_clusters: 1000 }
    }
}

impl Params for BrownParams {
    fn check(&self) -> Result<(), ParamError> {
        // The table of losses has the square of this many entries: 2^15 clusters need 40 GiB.
        check_range("n_clusters", self.n_clusters, 1..=1 << 15)
    }
}
