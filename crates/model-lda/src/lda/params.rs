use crate::dirichlet::DIRICHLET;
use latens_model::{ParamError, Params, check_range};
use serde::{Deserialize, Serialize};

/// Parameters of latent Dirichlet allocation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct LdaParams {
    /// Number of topics.
    pub n_topics: usize,
    /// Number of Gibbs sampling iterations over all tokens.
    pub n_iterations: usize,
    /// Sampling algorithm.
    pub sampler: LdaSampler,
    /// Dirichlet parameter of each topic in a document. Default: 1 / `n_topics`.
    pub alpha: Option<f64>,
    /// Learn one `alpha` per topic (asymmetric prior), updated every 20 iterations.
    pub optimize_alpha: bool,
    /// Dirichlet parameter of each word in a topic.
    pub beta: f64,
    /// Random seed.
    pub seed: u64,
}

latens_model::setters!(LdaParams {
    n_topics: usize,
    n_iterations: usize,
    sampler: LdaSampler,
    optimize_alpha: bool,
    beta: f64,
    seed: u64;
    optional alpha: f64,
});

/// The sampling algorithm. Both samplers have the same stationary distribution and differ only in speed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LdaSampler {
    /// `dense` for few topics or long documents, otherwise `sparse`.
    #[default]
    Auto,
    /// Computes the weights of all topics.
    Dense,
    /// Draws proposals from the topics of the document and from other tokens of the word. The cost depends on the number
    /// of topics per document, not on the total number.
    Sparse,
}

impl Default for LdaParams {
    fn default() -> Self {
        LdaParams {
            n_topics: 50,
            n_iterations: 200,
            sampler: LdaSampler::default(),
            alpha: None,
            optimize_alpha: false,
            beta: 0.01,
            seed: 1,
        }
    }
}

impl LdaParams {
    pub(crate) fn first_alpha(&self) -> f64 {
        self.alpha.unwrap_or(1.0 / self.n_topics as f64)
    }

    /// The sampler to use for documents of this mean length.
    pub(crate) fn chosen_sampler(&self, mean_length: f64) -> LdaSampler {
        // Break-even is at about 120 topics for newsgroup posts and 400 for full papers (docs/results/topics.md).
        let many = 100.0 + mean_length / 4.0;
        match self.sampler {
            LdaSampler::Auto if (self.n_topics as f64) < many => LdaSampler::Dense,
            LdaSampler::Auto => LdaSampler::Sparse,
            chosen => chosen,
        }
    }
}

impl Params for LdaParams {
    fn check(&self) -> Result<(), ParamError> {
        check_range("n_topics", self.n_topics, 1..=65_535)?;
        check_range("n_iterations", self.n_iterations, 1..=1_000_000)?;
        check_range("alpha", self.first_alpha(), DIRICHLET)?;
        check_range("beta", self.beta, DIRICHLET)
    }
}
