//! Hyperparameters of factorial HMMs.

use latens_model::{ParamError, Params, check_range, check_that};
use serde::{Deserialize, Serialize};

/// Inference of the hidden states of a sentence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Inference {
    /// [`Inference::ExactMf`] for at most 2²⁰ joint states, otherwise [`Inference::Tilted`].
    #[default]
    Auto,
    /// Mean field with the exact expectation of the log-normalizer, from a table of all joint states.
    ExactMf,
    /// Mean field with a tilted bound on the log-normalizer, which is tight and allows any number of joint states.
    Tilted,
    /// Mean field with Jensen's bound on the log-normalizer, as in Nepal and Yates (2013). It is loose.
    Jensen,
    /// Exact inference in the joint chain of all layers, for at most 2¹⁷ joint states.
    Exact,
}

impl Inference {
    /// Number of joint states, or `None` if a table cannot hold them.
    pub(crate) fn n_joint(n_layers: usize, n_states: usize) -> Option<usize> {
        let n_joint = n_states.checked_pow(u32::try_from(n_layers).ok()?)?;
        (n_joint <= MAX_TABLE_STATES).then_some(n_joint)
    }

    /// Whether the M-step needs expected counts of joint states.
    pub(crate) fn counts_joint_states(self) -> bool {
        matches!(self, Inference::ExactMf | Inference::Exact)
    }
}

/// Maximum number of joint states of a table.
const MAX_TABLE_STATES: usize = 1 << 20;
/// Maximum number of joint states of exact inference.
const MAX_CHAIN_STATES: usize = 1 << 17;

/// Optimizer of the emission scores in the M-step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MStep {
    /// Closed-form updates of the words of the batch, and of all words from time to time. Counts of words are those of
    /// the text. Like [`MStep::Layers`] if `inference` is [`Inference::Tilted`] or [`Inference::Jensen`].
    #[default]
    Lazy,
    /// Closed-form updates of all words, one layer at a time. They never decrease the bound.
    Layers,
    /// L-BFGS, as in Nepal and Yates (2013).
    Lbfgs,
}

/// Base score of a word in all states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BaseMeasure {
    /// Logarithm of the relative frequency: scores of zero give the unigram model.
    #[default]
    Unigram,
    /// Zero, as in Nepal and Yates (2013).
    Uniform,
}

/// Treatment of rare and unseen words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unknown {
    /// Words with the same signature (capitalization, digits, hyphens, suffix) share their scores.
    #[default]
    Signature,
    /// All such words are `<unk>`, as in Nepal and Yates (2013).
    Unk,
    /// Such tokens are unobserved: their states are inferred from the context alone.
    Missing,
}

/// Parameters of a factorial hidden Markov model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct FhmmParams {
    /// Number of layers.
    pub n_layers: usize,
    /// Number of hidden states per layer.
    pub n_states: usize,
    /// Inference of the hidden states.
    pub inference: Inference,
    /// Optimizer of the emission scores in the M-step.
    pub m_step: MStep,
    /// Maximum number of L-BFGS iterations per M-step.
    pub lbfgs_iterations: usize,
    /// Number of passes over the training text.
    pub epochs: usize,
    /// Number of sentences per batch. By default 1000, or fewer to get 1000 batches over all epochs (500 unless `m_step`
    /// is `lazy`).
    pub batch_sentences: Option<usize>,
    /// Exponent α of the step size (k + 2)^−α of batch k. With 0, each batch replaces all earlier statistics.
    pub step_power: f64,
    /// Maximum number of mean-field sweeps per sentence in training.
    pub sweeps: usize,
    /// Number of pseudo-tokens, with unigram word frequencies and uniform states. By default 50 per state of a layer.
    pub pseudo_tokens: Option<f64>,
    /// Pseudo-count added to the expected count of every start state and every transition.
    pub prior: f64,
    /// Base score of a word in all states.
    pub base_measure: BaseMeasure,
    /// Minimum count of a word; rarer words are treated as set by `unknown`.
    pub min_count: u64,
    /// Treatment of rare and unseen words.
    pub unknown: Unknown,
    /// Number of random initializations. Each is trained for two epochs, and training continues with the best one.
    pub restarts: usize,
    /// Random seed.
    pub seed: u64,
}

latens_model::setters!(FhmmParams {
    n_layers: usize,
    n_states: usize,
    inference: Inference,
    m_step: MStep,
    lbfgs_iterations: usize,
    epochs: usize,
    step_power: f64,
    sweeps: usize,
    prior: f64,
    base_measure: BaseMeasure,
    min_count: u64,
    unknown: Unknown,
    restarts: usize,
    seed: u64;
    optional batch_sentences: usize, pseudo_tokens: f64
});

impl Default for FhmmParams {
    fn default() -> Self {
        FhmmParams {
            n_layers: 5,
            n_states: 10,
            inference: Inference::Auto,
            m_step: MStep::Lazy,
            lbfgs_iterations: 100,
            epochs: 5,
            batch_sentences: None,
            step_power: 0.7,
            sweeps: 10,
            pseudo_tokens: None,
            prior: 0.1,
            base_measure: BaseMeasure::Unigram,
            min_count: 2,
            unknown: Unknown::Signature,
            restarts: 1,
            seed: 1,
        }
    }
}

impl Params for FhmmParams {
    fn check(&self) -> Result<(), ParamError> {
        check_range("n_layers", self.n_layers, 1..=64)?;
        check_range("n_states", self.n_states, 2..=1024)?;
        check_range("lbfgs_iterations", self.lbfgs_iterations, 1..=100_000)?;
        check_range("epochs", self.epochs, 0..=1_000_000)?;
        check_range("batch_sentences", self.batch_sentences.unwrap_or(1), 1..)?;
        check_range("step_power", self.step_power, 0.0..=1.0)?;
        check_range("sweeps", self.sweeps, 1..=1000)?;
        check_range("pseudo_tokens", self.pseudo_tokens.unwrap_or(0.0), 0.0..=1e12)?;
        // With a prior of zero, transitions and thus sentences could become impossible.
        check_range("prior", self.prior, 1e-6..=1e9)?;
        check_range("min_count", self.min_count, 1..)?;
        check_range("restarts", self.restarts, 1..=1000)?;
        self.check_joint_states()
    }
}

impl FhmmParams {
    fn check_joint_states(&self) -> Result<(), ParamError> {
        let most = match self.inference {
            Inference::ExactMf => MAX_TABLE_STATES,
            Inference::Exact => MAX_CHAIN_STATES,
            Inference::Auto | Inference::Tilted | Inference::Jensen => return Ok(()),
        };
        let fits = Inference::n_joint(self.n_layers, self.n_states).is_some_and(|n| n <= most);
        let must = format!(
            "such that `n_states` to the power of `n_layers` = {} is at most {most} for this `inference` \
             (`tilted` has no limit)",
            self.n_layers
        );
        check_that(fits, "n_states", must, self.n_states)
    }

    /// The inference in use, with [`Inference::Auto`] resolved.
    pub fn chosen_inference(&self) -> Inference {
        match self.inference {
            Inference::Auto => match Inference::n_joint(self.n_layers, self.n_states) {
                Some(_) => Inference::ExactMf,
                None => Inference::Tilted,
            },
            chosen => chosen,
        }
    }

    /// The optimizer in use: [`MStep::Lazy`] needs expected counts of joint states.
    pub fn chosen_m_step(&self) -> MStep {
        match self.m_step {
            MStep::Lazy if !self.chosen_inference().counts_joint_states() => MStep::Layers,
            chosen => chosen,
        }
    }

    /// Number of sentences per batch, for a text of `n_sentences`.
    pub fn batch_size(&self, n_sentences: usize) -> usize {
        /// Approximate minimum number of M-steps that update all words.
        const M_STEPS: usize = 500;
        /// Approximate minimum number of M-steps that update the words of their batch.
        const LAZY_M_STEPS: usize = 1000;
        /// Minimum number of sentences per batch of these, such that an M-step takes no longer than its E-step.
        const LAZY_SENTENCES: usize = 4;
        let (n_steps, least) = match self.chosen_m_step() {
            MStep::Lazy => (LAZY_M_STEPS, LAZY_SENTENCES),
            MStep::Layers | MStep::Lbfgs => (M_STEPS, 1),
        };
        let usual = (n_sentences * self.epochs / n_steps).clamp(least, 1000);
        self.batch_sentences.unwrap_or(usual)
    }

    /// Number of pseudo-tokens.
    pub fn chosen_pseudo_tokens(&self) -> f64 {
        self.pseudo_tokens.unwrap_or(50.0 * self.n_states as f64)
    }
}
