use latens_model::{ParamError, Params, check_range};
use serde::{Deserialize, Serialize};
use std::ops::Bound::{Excluded, Unbounded};

/// Parameters of latent Dirichlet allocation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct LdaParams {
    /// How many topics there are.
    pub n_topics: usize,
    /// How often every token is sampled.
    pub n_iterations: usize,
    /// How tokens are sampled.
    pub sampler: LdaSampler,
    /// How evenly documents mix topics, for each topic; 1 / `n_topics` if it is not said.
    pub alpha: Option<f64>,
    /// Whether `alpha` is only where an own number for each topic begins, fitted every 20 iterations.
    pub optimize_alpha: bool,
    /// How evenly topics mix words, for each word.
    pub beta: f64,
    /// Where random choices begin.
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

/// How tokens are sampled. Both leave the posterior as it is, and differ in speed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LdaSampler {
    /// `dense` for few topics, or long documents, else `sparse`.
    #[default]
    Auto,
    /// From the weights of all topics.
    Dense,
    /// With proposals from the topics of the document and from other tokens of the word: what matters is how many
    /// topics a document has, not how many there are.
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

    /// The sampler for documents of this mean length.
    pub(crate) fn chosen_sampler(&self, mean_length: f64) -> LdaSampler {
        // Where both are as fast: at about 120 topics for newsgroups, 400 for whole papers (docs/results/topics.md).
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
        check_range("alpha", self.first_alpha(), (Excluded(0.0), Unbounded))?;
        check_range("beta", self.beta, (Excluded(0.0), Unbounded))
    }
}
