//! The state of training.

use crate::distribution::Distribution;
use crate::inference::smoother::Smoother;
use crate::params::FhmmParams;
use crate::train::statistics::Statistics;
use crate::train::task::Task;
use latens_math::Rng;
use serde::{Deserialize, Serialize};

/// Position of the training loop, apart from the models. Field names are part of the checkpoint format.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct State {
    /// Index of the initialization under trial; `restarts` once one has been chosen.
    pub(super) restart: usize,
    /// Number of completed epochs of this model.
    pub(crate) epoch: usize,
    /// Number of completed batches of this epoch.
    pub(super) batch: usize,
    /// Number of completed batches of this model.
    pub(super) n_steps: u64,
    /// Bound of this epoch so far, in nats.
    pub(super) bound: f64,
    /// Number of tokens of this epoch so far.
    pub(super) n_tokens: u64,
    /// Sum of sweeps × tokens of this epoch so far.
    pub(super) token_sweeps: u64,
    /// Duration of the E-steps of this epoch so far, in seconds.
    pub(super) e_seconds: f64,
    /// Duration of the M-steps of this epoch so far, in seconds.
    pub(super) m_seconds: f64,
    /// Metrics of the last epoch.
    pub(crate) measured: Measured,
    /// Index and metrics of the best initialization so far.
    pub(super) best: Option<(usize, Measured)>,
}

/// Metrics of an epoch. Bounds are in nats per token.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) train_bound: Option<f64>,
    pub(crate) valid_bound: Option<f64>,
    /// Mean number of sweeps per token.
    pub(crate) sweeps: f64,
    pub(crate) e_seconds: f64,
    pub(crate) m_seconds: f64,
}

impl Measured {
    /// Metrics by name, for progress reports.
    pub(super) fn metrics(&self) -> Vec<(&'static str, f64)> {
        let mut metrics = vec![];
        metrics.extend(self.train_bound.map(|bound| ("train_bound", bound)));
        metrics.extend(self.valid_bound.map(|bound| ("valid_bound", bound)));
        metrics.push(("sweeps", self.sweeps));
        metrics.push(("e_step_seconds", self.e_seconds));
        metrics.push(("m_step_seconds", self.m_seconds));
        metrics
    }

    /// Criterion for the choice between initializations.
    pub(super) fn score(&self) -> f64 {
        self.valid_bound.or(self.train_bound).unwrap_or(f64::NEG_INFINITY)
    }
}

/// A model with the statistics to continue its training.
#[derive(Clone)]
pub(super) struct Candidate {
    pub(super) distribution: Distribution<f32>,
    pub(super) statistics: Statistics,
    pub(super) n_steps: u64,
}

/// A model under training.
pub(super) struct Trainer<'a> {
    pub(super) task: &'a Task<'a>,
    pub(super) smoother: Smoother<f32>,
    pub(super) statistics: Statistics,
    /// Best initialization so far, while initializations are compared.
    pub(super) best: Option<Candidate>,
    pub(super) state: State,
}

impl<'a> Trainer<'a> {
    /// Starts training from a random model.
    pub(super) fn start(task: &'a Task<'a>) -> Trainer<'a> {
        // A single initialization needs no comparison.
        let restart = if task.params.restarts == 1 { 1 } else { 0 };
        let state = State { restart, ..State::default() };
        let (smoother, statistics) = initial_model(task, 0);
        Trainer { task, smoother, statistics, best: None, state }
    }
}

/// Random stream number `number` of a kind.
pub(crate) fn stream(params: &FhmmParams, kind: u64, number: usize) -> Rng {
    Rng::stream(params.seed ^ (kind << 56), number as u64)
}

/// Kind of the streams of initializations, by restart.
pub(crate) const INITIALIZATION: u64 = 1;
/// Kind of the streams of sentence orders, by epoch.
pub(crate) const ORDER: u64 = 2;

/// Draws the initialization of a restart.
pub(super) fn initial_model(task: &Task<'_>, restart: usize) -> (Smoother<f32>, Statistics) {
    let inference = task.params.chosen_inference();
    let mut rng = stream(task.params, INITIALIZATION, restart);
    let distribution = Distribution::random(task.shape, &task.base, &mut rng);
    (Smoother::new(distribution, inference), Statistics::new(task.shape, inference))
}
