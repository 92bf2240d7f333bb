use latens_model::{ParamError, Params, check_range, check_that};
use serde::{Deserialize, Serialize};

/// How the states behind a sentence are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Inference {
    /// `ExactMf` if there are at most 2²⁰ joint states, else `Tilted`.
    #[default]
    Auto,
    /// Mean field, with the exact expectation of the normaliser: a table of all joint states.
    ExactMf,
    /// Mean field, with a bound of the normaliser that weights make tight: any number of joint states.
    Tilted,
    /// Mean field with the paper's bound of the normaliser, which is loose.
    Jensen,
    /// No approximation: the joint chain of all layers, up to 2¹⁷ joint states.
    Exact,
}

impl Inference {
    /// The joint states, unless they are too many for a table.
    pub(crate) fn n_joint(n_layers: usize, n_states: usize) -> Option<usize> {
        let n_joint = n_states.checked_pow(u32::try_from(n_layers).ok()?)?;
        (n_joint <= MOST_IN_TABLE).then_some(n_joint)
    }
}

const MOST_IN_TABLE: usize = 1 << 20;
const MOST_IN_CHAIN: usize = 1 << 17;

/// How the scores of words are learned from expected counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MStep {
    /// One layer after the other in closed form, which never lowers the bound.
    #[default]
    Layers,
    /// L-BFGS, as in the paper.
    Lbfgs,
}

/// What every word scores in all states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BaseMeasure {
    /// The logarithm of its frequency, so that scores of zero are the unigram model.
    #[default]
    Unigram,
    /// Nothing, as in the paper.
    Uniform,
}

/// What becomes of words that are rare or were never seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unknown {
    /// Words that look alike (capitals, digits, hyphens, endings) are one word.
    #[default]
    Signature,
    /// They are all one word, as in the paper.
    Unk,
    /// They say nothing: their states come from the words around them.
    Missing,
}

/// Parameters of a factorial hidden Markov model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FhmmParams {
    /// How many layers there are.
    pub n_layers: usize,
    /// How many states each layer has.
    pub n_states: usize,
    /// How the states behind a sentence are found.
    pub inference: Inference,
    /// How the scores of words are learned.
    pub m_step: MStep,
    /// The most steps of L-BFGS in an M-step.
    pub lbfgs_iterations: usize,
    /// How often the text is gone through.
    pub epochs: usize,
    /// How many sentences a mini-batch has; if not given, 1000, but so few that there are 500 mini-batches in all
    /// epochs.
    pub batch_sentences: Option<usize>,
    /// α of the step (k + 2)^−α that mini-batch k makes; 0 forgets all batches before it.
    pub step_power: f64,
    /// The most sweeps over the layers of a sentence while learning.
    pub sweeps: usize,
    /// How many tokens are taken to have been seen besides, with words by their frequency and all states alike; if
    /// not given, 50 a state of a layer.
    pub pseudo_tokens: Option<f64>,
    /// What is added to the expected count of every first state and every transition.
    pub prior: f64,
    /// What every word scores in all states.
    pub base_measure: BaseMeasure,
    /// Words that were seen fewer times are unknown ones.
    pub min_count: u64,
    /// What becomes of unknown words.
    pub unknown: Unknown,
    /// How many first models are tried for two epochs; the best one is learned to the end.
    pub restarts: usize,
    /// Where all random choices come from.
    pub seed: u64,
}

impl Default for FhmmParams {
    fn default() -> Self {
        FhmmParams {
            n_layers: 5,
            n_states: 10,
            inference: Inference::Auto,
            m_step: MStep::Layers,
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
        // Without any, a transition could become impossible, and with it a sentence.
        check_range("prior", self.prior, 1e-6..=1e9)?;
        check_range("min_count", self.min_count, 1..)?;
        check_range("restarts", self.restarts, 1..=1000)?;
        self.check_joint_states()
    }
}

impl FhmmParams {
    fn check_joint_states(&self) -> Result<(), ParamError> {
        let most = match self.inference {
            Inference::ExactMf => MOST_IN_TABLE,
            Inference::Exact => MOST_IN_CHAIN,
            Inference::Auto | Inference::Tilted | Inference::Jensen => return Ok(()),
        };
        let fits = Inference::n_joint(self.n_layers, self.n_states).is_some_and(|n| n <= most);
        let must = format!(
            "such that `n_states` to the power of `n_layers` = {} is at most {most} for this `inference` \
             (`tilted` takes any)",
            self.n_layers
        );
        check_that(fits, "n_states", must, self.n_states)
    }

    /// How the states are found, `Auto` decided.
    pub fn chosen_inference(&self) -> Inference {
        match self.inference {
            Inference::Auto => match Inference::n_joint(self.n_layers, self.n_states) {
                Some(_) => Inference::ExactMf,
                None => Inference::Tilted,
            },
            chosen => chosen,
        }
    }

    /// How many sentences a mini-batch of a text has.
    pub fn batch_size(&self, n_sentences: usize) -> usize {
        /// About as many M-steps are needed at least.
        const M_STEPS: usize = 500;
        let usual = (n_sentences * self.epochs / M_STEPS).clamp(1, 1000);
        self.batch_sentences.unwrap_or(usual)
    }

    /// How many tokens are taken to have been seen besides.
    pub fn chosen_pseudo_tokens(&self) -> f64 {
        self.pseudo_tokens.unwrap_or(50.0 * self.n_states as f64)
    }
}
