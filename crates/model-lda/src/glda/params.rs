use crate::dirichlet::DIRICHLET;
use latens_model::{ParamError, Params, check_range};
use serde::{Deserialize, Serialize};
use std::ops::Bound::{Excluded, Included};
use std::ops::RangeInclusive;

/// Parameters of Gaussian LDA.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct GldaParams {
    /// Number of topics.
    pub n_topics: usize,
    /// Number of Gibbs sampling iterations over all tokens.
    pub n_iterations: usize,
    /// Sampling algorithm.
    pub sampler: Sampler,
    /// Shape of the topic covariances.
    pub covariance: Covariance,
    /// Initialization of the token topics.
    pub start: Start,
    /// Prior covariance of topics.
    pub prior: Preset,
    /// Dirichlet parameter of each topic in a document. Default: 1 / `n_topics`.
    pub alpha: Option<f64>,
    /// Learn one `alpha` per topic (asymmetric prior), updated every 20 iterations.
    pub optimize_alpha: bool,
    /// Prior weight κ₀ of the topic mean, in number of vectors.
    pub kappa: f64,
    /// Prior degrees of freedom ν₀ of the topic covariance. With M dimensions, must be above M − 1 for full covariances
    /// (default: M + 2, or M with the prior `das2015`), and above 0 for others (default: 3).
    pub nu: Option<f64>,
    /// Factor of the prior covariance, relative to `prior`.
    pub psi_scale: f64,
    /// Exponent of the vector densities. 1 is the model of the paper; smaller values give more weight to the other words
    /// of the document.
    pub likelihood_weight: f64,
    /// Number of document shards of the samplers `mh` and `alias`.
    pub n_shards: usize,
    /// Random seed.
    pub seed: u64,
}

latens_model::setters!(GldaParams {
    n_topics: usize,
    n_iterations: usize,
    sampler: Sampler,
    covariance: Covariance,
    start: Start,
    prior: Preset,
    optimize_alpha: bool,
    kappa: f64,
    psi_scale: f64,
    likelihood_weight: f64,
    n_shards: usize,
    seed: u64;
    optional alpha: f64, nu: f64,
});

/// The sampling algorithm.
///
/// With a likelihood weight of 1, all samplers have the same stationary distribution and differ only in speed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sampler {
    /// The fastest by an estimate from the numbers of tokens, words, topics and dimensions: usually `parallel`; `exact` if
    /// training takes less than a second; `exact` or `mh` for topics with very few vectors.
    #[default]
    Auto,
    /// Computes every density from scratch. For comparison only.
    Naive,
    /// Updates the Cholesky factors for every token (Das et al. 2015, section 4.2). For comparison only.
    Cholesky,
    /// Cholesky updates with proposals from alias tables (Das et al. 2015, section 4.3). For comparison only.
    Alias,
    /// Collapsed Gibbs sampling that removes a token from its topic in closed form.
    Exact,
    /// Collapsed sampling with Metropolis–Hastings proposals from a table of densities given the other document shards.
    Mh,
    /// Samples explicit means and covariances, then all documents in parallel.
    Parallel,
}

/// The shape of the topic covariances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Covariance {
    /// Full covariance matrices.
    #[default]
    Full,
    /// Diagonal covariance matrices.
    Diagonal,
    /// Multiples of the identity matrix.
    Spherical,
}

/// Initialization of the token topics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// The k-means cluster of the word's vector.
    #[default]
    Kmeans,
    /// Random topics.
    Random,
}

/// Prior covariance of topics, before scaling by `psi_scale`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// The mean variance of all word vectors, times the identity matrix.
    #[default]
    Relative,
    /// The prior in the code of Das et al. (2015): Ψ₀ = 3 M I and ν₀ = M.
    Das2015,
}

impl Default for GldaParams {
    fn default() -> Self {
        GldaParams {
            n_topics: 50,
            n_iterations: 50,
            sampler: Sampler::default(),
            covariance: Covariance::default(),
            start: Start::default(),
            prior: Preset::default(),
            alpha: None,
            optimize_alpha: false,
            kappa: 0.1,
            nu: None,
            psi_scale: 1.0,
            likelihood_weight: 1.0,
            n_shards: 4,
            seed: 1,
        }
    }
}

impl GldaParams {
    /// Initial `alpha` of each topic.
    pub(crate) fn first_alpha(&self) -> f64 {
        self.alpha.unwrap_or(1.0 / self.n_topics as f64)
    }
}

/// The range of degrees of freedom. Below it, precisions that are drawn from the prior underflow.
pub(super) const NU: RangeInclusive<f64> = 0.1..=1e9;

impl Params for GldaParams {
    fn check(&self) -> Result<(), ParamError> {
        check_range("n_topics", self.n_topics, 1..=65_535)?;
        check_range("n_iterations", self.n_iterations, 1..=1_000_000)?;
        check_range("alpha", self.first_alpha(), DIRICHLET)?;
        // κ₀ must not vanish in rounding next to one vector.
        check_range("kappa", self.kappa, 1e-9..=1e9)?;
        check_range("nu", self.nu.unwrap_or(1.0), NU)?;
        // A smaller scale would vanish in rounding next to the scatter of the vectors.
        check_range("psi_scale", self.psi_scale, 1e-9..=1e9)?;
        check_range("likelihood_weight", self.likelihood_weight, (Excluded(0.0), Included(1.0)))?;
        check_range("n_shards", self.n_shards, 2..=10_000)
    }
}
