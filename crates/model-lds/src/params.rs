use latens_counts::Boundary;
use latens_model::{ParamError, Params, check_range, check_that};
use serde::{Deserialize, Serialize};

/// Parameters of a linear dynamical system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LdsParams {
    /// How many numbers the state has.
    pub dim: usize,
    /// How many tokens apart words are that EM looks at.
    pub lags: usize,
    /// How many blocks the matrix has, in each direction, that the first model is made of; pairs of words
    /// up to `2 · ssid_lags − 1` tokens apart go into it.
    pub ssid_lags: usize,
    /// How often each word is taken to have been seen besides, alone; if not given, a fifth of how often a word
    /// is seen on average, but at least 1. It is what keeps rare words from being learned by heart.
    pub pseudo_counts: Option<f64>,
    /// How many steps of EM follow the first model at most; fewer if held-out text says so.
    pub n_iterations: usize,
    /// What pairs of words may not cross.
    pub boundary: Boundary,
    /// How often the randomised decomposition refines its basis.
    pub power_iterations: usize,
    /// Where the random basis begins.
    pub seed: u64,
}

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
                check_that(count <= 1e9, "pseudo_counts", "at most a billion", count)
            }
            None => Ok(()),
        }
    }
}

impl LdsParams {
    /// How many lags must be counted.
    pub fn counted_lags(&self) -> usize {
        self.lags.max(2 * self.ssid_lags - 1)
    }
}
