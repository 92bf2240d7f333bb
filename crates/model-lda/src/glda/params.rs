use latens_model::{ParamError, Params, check_range};
use serde::{Deserialize, Serialize};
use std::ops::Bound::{Excluded, Included, Unbounded};

/// Parameters of Gaussian LDA.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct GldaParams {
    /// How many topics there are.
    pub n_topics: usize,
    /// How often every token is sampled.
    pub n_iterations: usize,
    /// How tokens are sampled.
    pub sampler: Sampler,
    /// What shape topics have.
    pub covariance: Covariance,
    /// Where the topics of tokens begin.
    pub start: Start,
    /// What the prior covariance of topics is.
    pub prior: Preset,
    /// How evenly documents mix topics, for each topic; 1 / `n_topics` if it is not said.
    pub alpha: Option<f64>,
    /// Whether `alpha` is only where an own number for each topic begins, fitted every 20 iterations.
    pub optimize_alpha: bool,
    /// κ₀: of how many vectors the prior location of a topic counts.
    pub kappa: f64,
    /// ν₀: of how many vectors the prior covariance of a topic counts. Above the number of dimensions less one, and
    /// two more than it if nothing is said; for covariances that are not full above 0, and 3 if nothing is said.
    pub nu: Option<f64>,
    /// How much larger than the preset the prior covariance of topics is.
    pub psi_scale: f64,
    /// The power to which densities of vectors are raised: 1 is the model of the paper, less gives the other
    /// words of a document more of a say.
    pub likelihood_weight: f64,
    /// In how many parts the samplers `mh` and `alias` cut the documents.
    pub n_shards: usize,
    /// Where random choices begin.
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

/// How tokens are sampled. With a likelihood weight of 1 all leave the posterior as it is, and differ in speed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sampler {
    /// `exact` for small work, `mh` for topics of few vectors, else `parallel`.
    #[default]
    Auto,
    /// Every density from scratch: for comparison.
    Naive,
    /// The factors of all topics follow each token out and in (Das et al. 2015, section 4.2): for comparison.
    Cholesky,
    /// The same, with proposals from alias tables (Das et al. 2015, section 4.3): for comparison.
    Alias,
    /// Collapsed, with closed forms for a topic without a token of its own.
    Exact,
    /// Collapsed, with proposals from a table of densities given the other shards of the documents.
    Mh,
    /// With explicit means and covariances, which all threads share.
    Parallel,
}

/// What shape topics have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Covariance {
    /// Any.
    #[default]
    Full,
    /// Along the axes.
    Diagonal,
    /// Round.
    Spherical,
}

/// Where the topics of tokens begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// With the cluster of their word's vector.
    #[default]
    Kmeans,
    /// Anywhere.
    Random,
}

/// What the prior covariance of topics is, before `psi_scale`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// That of the vectors of all words, made round.
    #[default]
    Relative,
    /// What the program of Das et al. (2015) has: Ψ₀ = 3 M I, and ν₀ = M.
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
    /// The first number for each topic of how evenly documents mix topics.
    pub(crate) fn first_alpha(&self) -> f64 {
        self.alpha.unwrap_or(1.0 / self.n_topics as f64)
    }

    /// The sampler for so many tokens and dimensions.
    pub(crate) fn chosen_sampler(&self, n_tokens: usize, dim: usize) -> Sampler {
        let (n, k, m) = (n_tokens as f64, self.n_topics as f64, dim as f64);
        match self.sampler {
            // A second or so for an iteration.
            Sampler::Auto if n * k * m * m < 1e10 => Sampler::Exact,
            // Where topics are small, a token's own weight in an explicit covariance holds it back.
            Sampler::Auto if n < 50.0 * k * m => Sampler::Mh,
            Sampler::Auto => Sampler::Parallel,
            chosen => chosen,
        }
    }
}

impl Params for GldaParams {
    fn check(&self) -> Result<(), ParamError> {
        check_range("n_topics", self.n_topics, 1..=65_535)?;
        check_range("n_iterations", self.n_iterations, 1..=1_000_000)?;
        let positive = (Excluded(0.0), Unbounded);
        check_range("alpha", self.first_alpha(), positive)?;
        check_range("kappa", self.kappa, positive)?;
        check_range("nu", self.nu.unwrap_or(1.0), positive)?;
        // Less is lost beside the scatter of vectors when numbers are rounded.
        check_range("psi_scale", self.psi_scale, 1e-9..)?;
        check_range("likelihood_weight", self.likelihood_weight, (Excluded(0.0), Included(1.0)))?;
        check_range("n_shards", self.n_shards, 2..=10_000)
    }
}
