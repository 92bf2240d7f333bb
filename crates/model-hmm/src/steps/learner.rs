//! The training steps of a gradient-based learner, on some device.

use crate::params::HmmParams;
use crate::recursion::batch::Batch;
use crate::recursion::forward_backward::ForwardBackward;
use crate::space::kept_states::KeptStates;
use crate::space::state_space::StateSpace;
use crate::tables::expected_counts::ExpectedCounts;
use crate::tables::probability_tables::Tables;
use crate::tables::unknown_words::reserve_unknown_share;
use crate::weights::mapping::TableMapping;
use latens_model::FitError;
use latens_model::group::{Group, add_up};
use latens_nn::{AdamW, AdamWParams, Dropout, clip_factor, norm};

/// A model under training on some device. It holds the weights and the state of the optimizer and does whole steps, so
/// that probabilities and expected counts never leave the device.
pub(crate) trait DeviceLearner {
    /// What the device prepares for a mini-batch before its step.
    type Plan;

    /// Prepares a mini-batch, or the share of this process, given the states that it keeps.
    fn plan(&self, batch: &Batch<'_>, kept: &KeptStates) -> Self::Plan;

    /// Starts a step of gradient ascent: weights → probabilities → expected counts → gradient → weights.
    fn begin_step(
        &mut self,
        batch: &Batch<'_>,
        plan: &Self::Plan,
        choices: &Choices,
        learning_rate: f64,
    ) -> Result<(), FitError>;

    /// Waits for the end of the step. Returns Σ ln p of the whole mini-batch before the step. If it or the gradient is not finite,
    /// returns NaN and leaves the weights unchanged.
    fn end_step(&mut self) -> Result<f64, FitError>;

    /// Σ ln p of sentences with all states and without tags.
    fn log_prob(&mut self, batches: &[Batch<'_>]) -> Result<f64, FitError>;

    /// The current weights.
    fn weights(&self) -> Result<Vec<f32>, FitError>;

    /// The weights and the state of the optimizer, for a checkpoint.
    fn state(&self) -> Result<LearnerState, FitError>;
}

/// What a mini-batch has besides its sentences, in all processes: its random choices and its size.
#[derive(Clone, Debug)]
pub(crate) struct Choices {
    /// The states that state dropout keeps.
    pub(crate) kept: KeptStates,
    /// The dropout of hidden units. On GPUs, the units also depend on the share of the process.
    pub(crate) dropout: Option<Dropout>,
    /// The number of tokens of the whole mini-batch.
    pub(crate) n_tokens: usize,
}

/// Weights and the state of the optimizer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LearnerState {
    pub(crate) weights: Vec<f32>,
    pub(crate) mean: Vec<f32>,
    pub(crate) square: Vec<f32>,
    pub(crate) n_steps: u64,
}

impl LearnerState {
    /// Initial weights with a fresh optimizer.
    pub(crate) fn new(weights: Vec<f32>) -> LearnerState {
        let zeros = vec![0.0; weights.len()];
        LearnerState { weights, mean: zeros.clone(), square: zeros, n_steps: 0 }
    }
}

/// The learner on the CPU.
pub(crate) struct CpuLearner<'a> {
    space: &'a StateSpace,
    clip: f64,
    mapping: Box<dyn TableMapping<f32>>,
    weights: Vec<f32>,
    optimizer: AdamW<f32>,
    gradient: Vec<f32>,
    tables: Tables<f32>,
    forward_backward: ForwardBackward<f32>,
    expected: ExpectedCounts<f32>,
    group: Option<&'a dyn Group>,
    /// Σ ln p of the last step.
    log_prob: f64,
}

impl<'a> CpuLearner<'a> {
    pub(crate) fn new(
        params: &HmmParams,
        space: &'a StateSpace,
        mapping: Box<dyn TableMapping<f32>>,
        state: LearnerState,
    ) -> CpuLearner<'a> {
        let adamw = AdamWParams { weight_decay: params.weight_decay, ..AdamWParams::default() };
        let LearnerState { weights, mean, square, n_steps } = state;
        CpuLearner {
            space,
            clip: params.clip,
            mapping,
            gradient: vec![0.0; weights.len()],
            weights,
            optimizer: AdamW::from_parts(adamw, mean, square, n_steps),
            tables: Tables::default(),
            forward_backward: ForwardBackward::default(),
            expected: ExpectedCounts::default(),
            group: None,
            log_prob: f64::NAN,
        }
    }

    /// Learns together with other processes.
    pub(crate) fn with_group(mut self, group: Option<&'a dyn Group>) -> Self {
        self.group = group;
        self
    }
}

#[cfg(all(test, feature = "cuda"))]
impl CpuLearner<'_> {
    /// The gradient of Σ ln p of the last step.
    pub(crate) fn gradient(&self) -> &[f32] {
        &self.gradient
    }
}

impl DeviceLearner for CpuLearner<'_> {
    type Plan = ();

    fn plan(&self, _: &Batch<'_>, _: &KeptStates) {}

    fn begin_step(
        &mut self,
        batch: &Batch<'_>,
        _: &(),
        choices: &Choices,
        learning_rate: f64,
    ) -> Result<(), FitError> {
        let Choices { kept, dropout, n_tokens } = choices;
        let CpuLearner { space, mapping, weights, tables, expected, gradient, .. } = self;
        gradient.fill(0.0);
        let mut log_prob = 0.0;
        // A mini-batch may have fewer sentences than there are processes.
        if !batch.sentences.is_empty() {
            mapping.forward(weights, space, kept, *dropout, tables);
            let log_probs = self.forward_backward.expected_counts(space, tables, batch, expected);
            mapping.backward(weights, space, kept, tables, expected, gradient);
            log_prob = log_probs.iter().sum();
        }
        if let Some(group) = self.group {
            log_prob =
                add_up(group, gradient, log_prob).map_err(FitError::step("add up gradients"))?;
        }
        // The loss is the mean of −ln p per token.
        let per_token = 1.0 / (*n_tokens).max(1) as f64;
        let norm = norm(gradient) * per_token;
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
        let CpuLearner { space, mapping, weights, tables, forward_backward, .. } = self;
        mapping.forward_to_score(weights, space, tables);
        reserve_unknown_share(space, tables);
        Ok(batches.iter().flat_map(|batch| forward_backward.log_probs(space, tables, batch)).sum())
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
