//! The device-specific part of training, and its CPU implementation.

use crate::network::batches::{Batch, Reader};
use crate::network::definition::{Gradient, Network, Scratch};
use crate::network::masks::Masks;
use crate::params::{NeuralParams, Optimizer};
use latens_corpus::WordId;
use latens_math::linalg::Par;
use latens_model::FitError;
use latens_nn::{AdamW, AdamWParams, Sgd, clip_factor, sparse_norm};
use rayon::prelude::*;

/// A network on a device. Holds the weights, the optimizer state and the recurrent states of the streams, and performs
/// optimization steps.
pub(crate) trait DeviceLearner {
    /// A mini-batch in the form that the device needs.
    type Plan;

    /// Plans the step of a mini-batch. The device may still work on the step before.
    fn plan(&self, batch: &Batch) -> Self::Plan;

    /// Starts an optimization step on a mini-batch. No other function may be called before [`DeviceLearner::end_step`],
    /// except `plan`.
    fn begin_step(
        &mut self,
        batch: &Batch,
        plan: &Self::Plan,
        choices: &Choices,
    ) -> Result<(), FitError>;

    /// Completes the step. Returns Σ ln p of the batch before the step. If the loss or the gradient is not finite, returns
    /// NaN and leaves the weights unchanged.
    fn end_step(&mut self) -> Result<f64, FitError>;

    /// Σ ln p of running text, with the averaged weights if there are.
    fn log_prob(&mut self, text: &[WordId]) -> Result<f64, FitError>;

    /// Resets the recurrent states of all streams.
    fn forget(&mut self) -> Result<(), FitError>;

    /// Replaces the weights but keeps the optimizer state.
    fn set_weights(&mut self, weights: &[f32]) -> Result<(), FitError>;

    /// The state to store in a checkpoint.
    fn state(&self) -> Result<LearnerState, FitError>;

    /// The weights of the model: the averaged weights if there are, else the current ones.
    fn model_weights(&self) -> Result<Vec<f32>, FitError> {
        let LearnerState { weights, average, .. } = self.state()?;
        Ok(if average.is_empty() { weights } else { average })
    }
}

/// A network on a device that draws the next word of every text.
pub(crate) trait DrawWords {
    /// Reads the last words of all texts and draws the next ones. `step` counts the words drawn before.
    fn draw(&mut self, batch: &Batch, step: usize) -> Result<Vec<u32>, FitError>;
}

/// Settings of one step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choices {
    /// What the step drops.
    pub(crate) masks: Option<Masks>,
    pub(crate) learning_rate: f64,
    /// Factor of the derivatives of each token's ln p.
    pub(crate) scale: f64,
}

/// Weights, their running average (empty without one), optimizer state (empty moments for SGD), and recurrent states.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LearnerState {
    pub(crate) weights: Vec<f32>,
    pub(crate) average: Vec<f32>,
    pub(crate) mean: Vec<f32>,
    pub(crate) square: Vec<f32>,
    pub(crate) n_steps: u64,
    pub(crate) memory: Vec<f32>,
}

impl LearnerState {
    /// The initial state with these weights.
    pub(crate) fn new(params: &NeuralParams, weights: Vec<f32>, n_memory: usize) -> LearnerState {
        let n = n_moments(params, weights.len());
        let average = if params.average > 0.0 { weights.clone() } else { vec![] };
        let (moments, memory) = (vec![0.0; n], vec![0.0; n_memory]);
        LearnerState {
            weights,
            average,
            mean: moments.clone(),
            square: moments,
            n_steps: 0,
            memory,
        }
    }

    /// The state of a network that learns nothing, without moments and average.
    #[cfg(feature = "cuda")]
    pub(crate) fn to_use(weights: &[f32], n_memory: usize) -> LearnerState {
        LearnerState {
            weights: weights.to_vec(),
            average: vec![],
            mean: vec![],
            square: vec![],
            n_steps: 0,
            memory: vec![0.0; n_memory],
        }
    }
}

/// Length of each moment vector of the optimizer.
pub(crate) fn n_moments(params: &NeuralParams, n_weights: usize) -> usize {
    if params.optimizer == Optimizer::AdamW { n_weights } else { 0 }
}

/// The hyperparameters of AdamW.
pub(crate) fn adamw(params: &NeuralParams) -> AdamWParams {
    let NeuralParams { weight_decay, beta2, .. } = *params;
    let betas = (AdamWParams::default().betas.0, beta2);
    AdamWParams { betas, weight_decay, ..AdamWParams::default() }
}

/// The learner on the CPU.
pub(crate) struct CpuLearner<'a> {
    params: &'a NeuralParams,
    network: &'a Network,
    weights: Vec<f32>,
    average: Vec<f32>,
    gradient: Gradient<f32>,
    optimizer: Steps,
    memory: Vec<f32>,
    scratch: Scratch<f32>,
    /// Σ ln p of the last step.
    log_prob: f64,
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
        let LearnerState { weights, average, mean, square, n_steps, memory } = state;
        let optimizer = match params.optimizer {
            Optimizer::Sgd => Steps::Sgd(Sgd::new()),
            Optimizer::AdamW => {
                Steps::AdamW(AdamW::from_parts(adamw(params), mean, square, n_steps))
            }
        };
        let (gradient, scratch) = (Gradient::new(network), Scratch::default());
        let log_prob = f64::NAN;
        CpuLearner {
            params,
            network,
            weights,
            average,
            gradient,
            optimizer,
            memory,
            scratch,
            log_prob,
        }
    }

    /// The gradient of the last step.
    #[cfg(all(test, feature = "cuda"))]
    pub(crate) fn gradient(&self) -> &[f32] {
        &self.gradient.values
    }
}

impl DeviceLearner for CpuLearner<'_> {
    type Plan = ();

    fn plan(&self, _: &Batch) {}

    fn begin_step(&mut self, batch: &Batch, (): &(), choices: &Choices) -> Result<(), FitError> {
        let CpuLearner { network, weights, gradient, memory, scratch, .. } = self;
        let &Choices { masks, learning_rate, scale } = choices;
        let par = Par::rayon(0);
        let loss = network.learn(weights, batch, memory, masks, scale, gradient, scratch, par);
        let Gradient { values: gradient, sparse } = gradient;
        let norm = sparse_norm(gradient, sparse);
        if !loss.is_finite() || !norm.is_finite() {
            self.log_prob = f64::NAN;
            return Ok(());
        }
        let factor = clip_factor(norm, self.params.clip);
        match &mut self.optimizer {
            Steps::Sgd(sgd) => sgd.update(weights, gradient, learning_rate, factor),
            Steps::AdamW(adamw) => {
                adamw.update_sparse(weights, gradient, sparse, learning_rate, factor);
            }
        }
        let rate = self.params.average as f32;
        self.average.par_iter_mut().with_min_len(1 << 14).zip(&*weights).for_each(
            |(mean, weight)| {
                *mean += rate * (weight - *mean);
            },
        );
        self.log_prob = -loss;
        Ok(())
    }

    fn end_step(&mut self) -> Result<f64, FitError> {
        Ok(self.log_prob)
    }

    fn log_prob(&mut self, text: &[WordId]) -> Result<f64, FitError> {
        let CpuLearner { params, network, weights, average, scratch, .. } = self;
        let weights = if average.is_empty() { weights } else { average };
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
            average: self.average.clone(),
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
