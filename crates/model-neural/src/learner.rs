//! The device-specific part of training, and its CPU implementation.

use crate::batches::{Batch, Reader};
use crate::network::{Network, Scratch};
use crate::params::{NeuralParams, Optimizer};
use latens_corpus::WordId;
use latens_math::linalg::Par;
use latens_model::FitError;
use latens_nn::{AdamW, AdamWParams, Dropout, Sgd, clip_factor, norm};

/// A network on a device. Holds the weights, the optimizer state and the recurrent states of the streams, and performs
/// optimization steps.
pub(crate) trait DeviceLearner {
    /// Takes an optimization step on a mini-batch. Returns Σ ln p of the batch before the step. If the loss or the
    /// gradient is not finite, returns NaN and leaves the weights unchanged.
    fn step(&mut self, batch: &Batch, choices: &Choices) -> Result<f64, FitError>;

    /// Σ ln p of running text.
    fn log_prob(&mut self, text: &[WordId]) -> Result<f64, FitError>;

    /// Resets the recurrent states of all streams.
    fn forget(&mut self) -> Result<(), FitError>;

    /// Replaces the weights but keeps the optimizer state.
    fn set_weights(&mut self, weights: &[f32]) -> Result<(), FitError>;

    /// The state to store in a checkpoint.
    fn state(&self) -> Result<LearnerState, FitError>;
}

/// Settings of one step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choices {
    /// The dropout mask.
    pub(crate) dropout: Option<Dropout>,
    pub(crate) learning_rate: f64,
    /// Factor of the derivatives of each token's ln p.
    pub(crate) scale: f64,
}

/// Weights, optimizer state (empty moments for SGD), and recurrent states.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LearnerState {
    pub(crate) weights: Vec<f32>,
    pub(crate) mean: Vec<f32>,
    pub(crate) square: Vec<f32>,
    pub(crate) n_steps: u64,
    pub(crate) memory: Vec<f32>,
}

impl LearnerState {
    /// The initial state with these weights.
    pub(crate) fn new(params: &NeuralParams, weights: Vec<f32>, n_memory: usize) -> LearnerState {
        let n = n_moments(params, weights.len());
        let memory = vec![0.0; n_memory];
        LearnerState { weights, mean: vec![0.0; n], square: vec![0.0; n], n_steps: 0, memory }
    }
}

/// Length of each moment vector of the optimizer.
pub(crate) fn n_moments(params: &NeuralParams, n_weights: usize) -> usize {
    if params.optimizer == Optimizer::AdamW { n_weights } else { 0 }
}

/// The hyperparameters of AdamW.
pub(crate) fn adamw(params: &NeuralParams) -> AdamWParams {
    AdamWParams { weight_decay: params.weight_decay, ..AdamWParams::default() }
}

/// The learner on the CPU.
pub(crate) struct CpuLearner<'a> {
    params: &'a NeuralParams,
    network: &'a Network,
    weights: Vec<f32>,
    gradient: Vec<f32>,
    optimizer: Steps,
    memory: Vec<f32>,
    scratch: Scratch<f32>,
}

enum Steps {
    Sgd(Sgd<f32>),
    AdamW(AdamW<f32>),
}

impl<'a> CpuLearner<'a> {
    pub(crate) fn new(
        params: &'a NeuralParams,
        network: &'a Network,
        state: LearnerState,
    ) -> CpuLearner<'a> {
        let LearnerState { weights, mean, square, n_steps, memory } = state;
        let optimizer = match params.optimizer {
            Optimizer::Sgd => Steps::Sgd(Sgd::new()),
            Optimizer::AdamW => {
                Steps::AdamW(AdamW::from_parts(adamw(params), mean, square, n_steps))
            }
        };
        let (gradient, scratch) = (vec![0.0; weights.len()], Scratch::default());
        CpuLearner { params, network, weights, gradient, optimizer, memory, scratch }
    }

    /// The gradient of the last step.
    #[cfg(all(test, feature = "cuda"))]
    pub(crate) fn gradient(&self) -> &[f32] {
        &self.gradient
    }
}

impl DeviceLearner for CpuLearner<'_> {
    fn step(&mut self, batch: &Batch, choices: &Choices) -> Result<f64, FitError> {
        let CpuLearner { network, weights, gradient, memory, scratch, .. } = self;
        let &Choices { dropout, learning_rate, scale } = choices;
        let par = Par::rayon(0);
        let loss = network.learn(weights, batch, memory, dropout, scale, gradient, scratch, par);
        let norm = norm(gradient);
        if !loss.is_finite() || !norm.is_finite() {
            return Ok(f64::NAN);
        }
        let factor = clip_factor(norm, self.params.clip);
        match &mut self.optimizer {
            Steps::Sgd(sgd) => sgd.update(weights, gradient, learning_rate, factor),
            Steps::AdamW(adamw) => adamw.update(weights, gradient, learning_rate, factor),
        }
        Ok(-loss)
    }

    fn log_prob(&mut self, text: &[WordId]) -> Result<f64, FitError> {
        let CpuLearner { params, network, weights, scratch, .. } = self;
        Ok(text_log_prob(params, network, weights, text, scratch, Par::rayon(0)))
    }

    fn forget(&mut self) -> Result<(), FitError> {
        self.memory.fill(0.0);
        Ok(())
    }

    fn set_weights(&mut self, weights: &[f32]) -> Result<(), FitError> {
        self.weights.copy_from_slice(weights);
        Ok(())
    }

    fn state(&self) -> Result<LearnerState, FitError> {
        let (mean, square, n_steps) = match &self.optimizer {
            Steps::Sgd(_) => (&[][..], &[][..], 0),
            Steps::AdamW(adamw) => (adamw.moments().0, adamw.moments().1, adamw.n_steps()),
        };
        Ok(LearnerState {
            weights: self.weights.clone(),
            mean: mean.to_vec(),
            square: square.to_vec(),
            n_steps,
            memory: self.memory.clone(),
        })
    }
}

/// Σ ln p of running text with an empty history.
pub(crate) fn text_log_prob(
    params: &NeuralParams,
    network: &Network,
    weights: &[f32],
    text: &[WordId],
    scratch: &mut Scratch<f32>,
    par: Par,
) -> f64 {
    let reader = Reader::to_score(params, text);
    let mut memory = vec![0.0; reader.n_streams() * network.state_len()];
    let mut log_prob = |at| {
        let batch = reader.batch(at, &[]);
        -network.loss(weights, &batch, &mut memory, scratch, par)
    };
    (0..reader.len()).map(&mut log_prob).sum()
}
