use latens_counts::Boundary;
use latens_model::{ParamError, Params, check_range, check_that};
use serde::{Deserialize, Serialize};

/// Parameters of a linear dynamical system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct LdsParams {
    /// Dimension of the state.
    pub dim: usize,
    /// Maximum distance in tokens of the pairs of words that EM uses.
    pub lags: usize,
    /// Number of block rows and block columns of the Hankel matrix for the initial model, which uses pairs of words
    /// up to `2 · ssid_lags − 1` tokens apart.
    pub ssid_lags: usize,
    /// Pseudo-count added to the count of every word, but not to pairs of words. The default is a
    /// fifth of the mean count of a word, and at least 1. Pseudo-counts prevent overfitting of rare words.
    pub pseudo_counts: Option<f64>,
    /// Maximum number of EM iterations after the initial model. Held-out text can stop EM earlier.
    pub n_iterations: usize,
    /// Boundary that pairs of words do not cross.
    pub boundary: Boundary,
    /// Number of power iterations of the randomized decomposition.
    pub power_iterations: usize,
    /// Random seed of the decomposition.
    pub seed: u64,
}

latens_model::setters!(LdsParams {
    dim: usize,
    lags: usize,
    ssid_lags: usize,
    n_iterations: usize,
    boundary: Boundary,
    power_iterations: usize,
    seed: u64;
    optional pseudo_counts: f64
});

impl Default for LdsParams {
    fn default() -> Self {
        LdsParams {
            dim: 200,
            lags: 7,
            ssid_lags: 4,
            pseudo_counts: None,
            n_iterations: 10,
            boundary: Boundary::Stream,
            power_iterations: 2,
            seed: 1,
        }
    }
}

impl Params for LdsParams {
    fn check(&self) -> Result<(), ParamError> {
        check_range("dim", self.dim, 1..=1 << 13)?;
        check_range("lags", self.lags, 1..=100)?;
        check_range("ssid_lags", self.ssid_lags, 2..=50)?;
        check_range("n_iterations", self.n_iterations, ..=100_000)?;
        check_range("power_iterations", self.power_iterations, ..=20)?;
        match self.pseudo_counts {
            Some(count) => {
                check_range("pseudo_counts", count, 0.0..)?;
                check_that(count <= 1e9, "pseudo_counts", "at most 1e9", count)
            }
            None => Ok(()),
        }
    }
}

impl LdsParams {
    /// The number of lags that must be counted for these parameters.
    pub fn counted_lags(&self) -> usize {
        self.lags.max(2 * self.ssid_lags - 1)
    }
}
