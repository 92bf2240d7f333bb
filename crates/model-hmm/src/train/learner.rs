//! A model under training on some device. The trainer knows only this.

use crate::params::HmmParams;
use crate::recursion::expected_counts::{Engine, Expected};
use crate::space::state_space::Support;
use crate::tables::probability_tables::{Batch, Kept, Tables};
use crate::weights::mapping::Parameters;
use latens_model::FitError;
use latens_nn::{AdamW, AdamWParams, Dropout, clip_factor, norm};

/// What a device does for the trainer: it holds the weights and the state of the optimiser, and does whole
/// steps, so that probabilities and expected counts need never leave it.
pub(crate) trait Learner {
    /// What a device wants to know of a mini-batch before its step.
    type Plan;

    /// Makes ready what can be before the step, in which some states take part.
    fn plan(&self, batch: &Batch<'_>, kept: &Kept) -> Self::Plan;

    /// Begins a step up the gradient of a mini-batch: weights ─▶ probabilities ─▶ expected counts ─▶ gradient ─▶
    /// weights.
    fn begin_step(
        &mut self,
        batch: &Batch<'_>,
        plan: &Self::Plan,
        choices: &Choices,
        learning_rate: f64,
    ) -> Result<(), FitError>;

    /// Waits for the end of the step that was begun. Returns Σ ln p of the batch before the step; NaN if that or
    /// the gradient is lost, and then the weights are as they were.
    fn end_step(&mut self) -> Result<f64, FitError>;

    /// Σ ln p of sentences with all states, tags aside.
    fn log_prob(&mut self, batches: &[Batch<'_>]) -> Result<f64, FitError>;

    /// The weights, which are the model.
    fn weights(&self) -> Result<Vec<f32>, FitError>;

    /// All that a checkpoint needs.
    fn state(&self) -> Result<LearnerState, FitError>;
}

/// What is drawn for a mini-batch.
#[derive(Clone, Debug)]
pub(crate) struct Choices {
    /// The states that take part.
    pub(crate) kept: Kept,
    /// Which hidden units do not.
    pub(crate) dropout: Option<Dropout>,
}

/// Weights and the state of the optimiser.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LearnerState {
    pub(crate) weights: Vec<f32>,
    pub(crate) mean: Vec<f32>,
    pub(crate) square: Vec<f32>,
    pub(crate) n_steps: u64,
}

impl LearnerState {
    /// An optimiser that has seen nothing.
    pub(crate) fn new(weights: Vec<f32>) -> LearnerState {
        let zeros = vec![0.0; weights.len()];
        LearnerState { weights, mean: zeros.clone(), square: zeros, n_steps: 0 }
    }
}

/// The learner on the CPU.
pub(crate) struct CpuLearner<'a> {
    support: &'a Support,
    clip: f64,
    parameters: Box<dyn Parameters<f32>>,
    weights: Vec<f32>,
    optimizer: AdamW<f32>,
    gradient: Vec<f32>,
    tables: Tables<f32>,
    engine: Engine<f32>,
    expected: Expected<f32>,
    /// Σ ln p of the last step.
    log_prob: f64,
}

impl<'a> CpuLearner<'a> {
    pub(crate) fn new(
        params: &HmmParams,
        support: &'a Support,
        parameters: Box<dyn Parameters<f32>>,
        state: LearnerState,
    ) -> CpuLearner<'a> {
        let adamw = AdamWParams { weight_decay: params.weight_decay, ..AdamWParams::default() };
        let LearnerState { weights, mean, square, n_steps } = state;
        CpuLearner {
            support,
            clip: params.clip,
            parameters,
            gradient: vec![0.0; weights.len()],
            weights,
            optimizer: AdamW::from_parts(adamw, mean, square, n_steps),
            tables: Tables::default(),
            engine: Engine::default(),
            expected: Expected::default(),
            log_prob: f64::NAN,
        }
    }
}

#[cfg(all(test, feature = "cuda"))]
impl CpuLearner<'_> {
    /// The gradient of Σ ln p of the last step.
    pub(crate) fn gradient(&self) -> &[f32] {
        &self.gradient
    }
}

impl Learner for CpuLearner<'_> {
    type Plan = ();

    fn plan(&self, _: &Batch<'_>, _: &Kept) {}

    fn begin_step(
        &mut self,
        batch: &Batch<'_>,
        _: &(),
        choices: &Choices,
        learning_rate: f64,
    ) -> Result<(), FitError> {
        let Choices { kept, dropout } = choices;
        let CpuLearner { support, parameters, weights, tables, expected, gradient, .. } = self;
        parameters.forward(weights, support, kept, *dropout, tables);
        let log_probs = self.engine.expectations(support, tables, batch, expected);
        gradient.fill(0.0);
        parameters.backward(weights, support, kept, tables, expected, gradient);
        // The loss is the negative mean over tokens.
        let per_token = 1.0 / batch.n_tokens().max(1) as f64;
        let norm = norm(gradient) * per_token;
        let log_prob: f64 = log_probs.iter().sum();
        if !log_prob.is_finite() || !norm.is_finite() {
            self.log_prob = f64::NAN;
            return Ok(());
        }
        let scale = -per_token * clip_factor(norm, self.clip);
        self.optimizer.update(weights, gradient, learning_rate, scale);
        self.log_prob = log_prob;
        Ok(())
    }

    fn end_step(&mut self) -> Result<f64, FitError> {
        Ok(self.log_prob)
    }

    fn log_prob(&mut self, batches: &[Batch<'_>]) -> Result<f64, FitError> {
        let CpuLearner { support, parameters, weights, tables, engine, .. } = self;
        parameters.forward_to_score(weights, support, tables);
        support.make_room_for_unknown_words(tables);
        Ok(batches.iter().flat_map(|batch| engine.log_probs(support, tables, batch)).sum())
    }

    fn weights(&self) -> Result<Vec<f32>, FitError> {
        Ok(self.weights.clone())
    }

    fn state(&self) -> Result<LearnerState, FitError> {
        let (mean, square) = self.optimizer.moments();
        Ok(LearnerState {
            weights: self.weights.clone(),
            mean: mean.to_vec(),
            square: square.to_vec(),
            n_steps: self.optimizer.n_steps(),
        })
    }
}
