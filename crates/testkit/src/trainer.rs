//! A minimal trainer with optional faults, and the pattern for real ones.

use latens_math::Rng;
use latens_model::{Checkpoint, FitError, ParamError, Params, Progress, Valid, Watch, check_range};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;

const KIND: &str = "walk";

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WalkParams {
    pub(crate) n_iterations: usize,
    pub(crate) rate: f64,
    pub(crate) seed: u64,
}

impl Default for WalkParams {
    fn default() -> Self {
        WalkParams { n_iterations: 10, rate: 0.1, seed: 1 }
    }
}

impl Params for WalkParams {
    fn check(&self) -> Result<(), ParamError> {
        check_range("n_iterations", self.n_iterations, 1..)?;
        check_range("rate", self.rate, 0.0..=1.0)
    }
}

/// Weights of a random walk around the data.
pub(crate) struct Walk {
    weights: Vec<f64>,
}

/// State of the trainer apart from the weights.
#[derive(Clone, Serialize, Deserialize)]
struct State {
    iteration: usize,
    rng: Rng,
}

/// A fault of the trainer.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Fault {
    None,
    OffersNothing,
    DoesNotStop,
    ForgetsRng,
    ForgetsWeights,
    ForgetsIteration,
    CheckpointDisturbs,
}

impl Walk {
    pub(crate) fn fit(
        params: &Valid<WalkParams>,
        data: &[f64],
        watch: &mut Watch,
    ) -> Result<Walk, FitError> {
        Walk::fit_with(Fault::None, params, data, watch)
    }

    pub(crate) fn resume(
        checkpoint: &Checkpoint,
        params: &Valid<WalkParams>,
        data: &[f64],
        watch: &mut Watch,
    ) -> Result<Walk, FitError> {
        Walk::resume_with(Fault::None, checkpoint, params, data, watch)
    }

    pub(crate) fn fit_with(
        fault: Fault,
        params: &Valid<WalkParams>,
        data: &[f64],
        watch: &mut Watch,
    ) -> Result<Walk, FitError> {
        let state = State { iteration: 0, rng: Rng::new(params.seed) };
        walk(fault, params, data, state, vec![0.0; data.len()], watch)
    }

    pub(crate) fn resume_with(
        fault: Fault,
        checkpoint: &Checkpoint,
        params: &Valid<WalkParams>,
        data: &[f64],
        watch: &mut Watch,
    ) -> Result<Walk, FitError> {
        checkpoint.check_fits(KIND, params, fingerprint(data), &["n_iterations"])?;
        let mut state: State = checkpoint.state()?;
        let mut weights = checkpoint.array("weights", &[data.len()])?;
        match fault {
            Fault::ForgetsRng => state.rng = Rng::new(params.seed),
            Fault::ForgetsWeights => weights.fill(0.0),
            Fault::ForgetsIteration => state.iteration = 0,
            _ => {}
        }
        walk(fault, params, data, state, weights, watch)
    }

    pub(crate) fn assert_same(a: &Walk, b: &Walk) {
        let bits = |walk: &Walk| walk.weights.iter().map(|w| w.to_bits()).collect::<Vec<_>>();
        assert!(bits(a) == bits(b), "{:?} and {:?} differ", a.weights, b.weights);
    }
}

fn walk(
    fault: Fault,
    params: &Valid<WalkParams>,
    data: &[f64],
    mut state: State,
    mut weights: Vec<f64>,
    watch: &mut Watch,
) -> Result<Walk, FitError> {
    while state.iteration < params.n_iterations {
        for (weight, target) in weights.iter_mut().zip(data) {
            *weight += params.rate * (target + state.rng.uniform() - *weight);
        }
        state.iteration += 1;
        let disturbed = RefCell::new(state.clone());
        let checkpoint = || {
            disturbed.borrow_mut().rng.uniform();
            Ok(Checkpoint::new(KIND, params, fingerprint(data), &state).with_array(
                "weights",
                &[weights.len()],
                &weights,
            ))
        };
        let distance = weights.iter().zip(data).map(|(w, x)| (w - x).abs()).sum();
        let progress = Progress {
            phase: "walk",
            done: state.iteration as u64,
            total: Some(params.n_iterations as u64),
            unit: "iterations",
            metrics: &[("distance", distance)],
            checkpoint: (fault != Fault::OffersNothing).then_some(&checkpoint),
            ..Progress::default()
        };
        let stopped = progress.report(watch);
        if fault != Fault::DoesNotStop {
            stopped?;
        }
        if fault == Fault::CheckpointDisturbs {
            state = disturbed.into_inner();
        }
    }
    Ok(Walk { weights })
}

fn fingerprint(data: &[f64]) -> u64 {
    data.iter().fold(0, |hash: u64, x| hash.rotate_left(7) ^ x.to_bits())
}
