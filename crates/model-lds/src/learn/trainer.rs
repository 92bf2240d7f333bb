//! The training loop: an initial model, then iterations of EM; the best model on held-out text is kept.

use crate::learn::checkpoint::{self, Restored};
use crate::learn::e_step::{Expectations, StateMoments, WordTerms, expectations};
use crate::learn::likelihood::{Run, TextGain, warm_up};
use crate::learn::m_step::m_step;
use crate::learn::memory_budget::n_oversamples;
use crate::learn::moments::covariances::Covariances;
use crate::learn::state::{Learned, Measured, Task, TrainingState};
use crate::learn::subspace::{Sketch, decompose};
use crate::linalg::error::NumericError;
use crate::system::canonical::Canonical;
use crate::system::steady_state::SteadyState;
use latens_model::{Checkpoint, FitError, ParamError, Progress, Watch};
use std::sync::Arc;
use std::time::Instant;

/// Number of iterations without a better model on held-out text before training stops.
const PATIENCE: usize = 2;

struct Trainer<'a> {
    task: &'a Task<'a>,
    current: Arc<Canonical<f32>>,
    expected: Option<Expectations<f32>>,
    best: Option<Measured>,
    state: TrainingState,
    last_valid_gain: Option<f64>,
    started: Instant,
}

/// Trains a model, from the start or from a checkpoint.
pub(crate) fn learn(
    task: &Task<'_>,
    checkpoint: Option<&Checkpoint>,
    watch: &mut Watch,
) -> Result<Learned, FitError> {
    let mut trainer = match checkpoint {
        Some(checkpoint) => Trainer::resume(task, checkpoint)?,
        None => Trainer::begin(task, watch)?,
    };
    while !trainer.is_over() {
        trainer.step(watch)?;
    }
    let Trainer { best, state, .. } = trainer;
    Ok(Learned { best: best.expect("the initial model is measured"), state })
}

impl<'a> Trainer<'a> {
    /// Finds the initial model.
    fn begin(task: &'a Task<'a>, watch: &mut Watch) -> Result<Trainer<'a>, FitError> {
        let (params, started) = (task.params, Instant::now());
        let sketch = Sketch {
            n_oversamples: n_oversamples(params.dim, params.ssid_lags),
            n_power_iterations: params.power_iterations,
            seed: params.seed,
        };
        let (mut done, total) = (0, 2 * params.power_iterations as u64 + 2);
        let mut step = || {
            done += 1;
            let phase = "find the subspace";
            Progress { phase, done, total: Some(total), unit: "products", ..Progress::default() }
                .report(watch)
                .map_err(Stop::Fit)
        };
        let decomposition =
            decompose(task.moments, params.ssid_lags, params.dim, sketch, &mut step)?;
        let rank = decomposition.rank();
        if rank < params.dim {
            return Err(FitError::Params(ParamError {
                name: "dim",
                must: format!("at most {rank}, the rank of the covariances of this text"),
                got: params.dim.to_string(),
            }));
        }
        let correlation = decomposition.values[0] / params.ssid_lags as f64;
        let current = decomposition
            .identify(task.moments.null_vector())
            .map_err(FitError::step("compute the initial model"))?
            .model;
        drop(decomposition);
        let state = TrainingState {
            iteration: 0,
            dim: params.dim,
            best_iteration: 0,
            gain: 0.0,
            valid_gain: None,
            last_gain: f64::NEG_INFINITY,
            n_clipped: current.n_clipped,
            correlation,
            worst_fall: 0.0,
            stopped: None,
            seconds: 0.0,
        };
        let mut trainer = Trainer {
            task,
            current: Arc::new(current),
            expected: None,
            best: None,
            state,
            last_valid_gain: None,
            started,
        };
        trainer.measure().map_err(FitError::step("evaluate the initial model"))?;
        trainer.report(watch)?;
        Ok(trainer)
    }

    /// Continues from a checkpoint.
    fn resume(task: &'a Task<'a>, checkpoint: &Checkpoint) -> Result<Trainer<'a>, FitError> {
        let Restored { state, current, best } = checkpoint::restore(task, checkpoint)?;
        let mut trainer = Trainer {
            task,
            current,
            expected: None,
            best: Some(best),
            state,
            last_valid_gain: None,
            started: Instant::now(),
        };
        if !trainer.is_over() {
            trainer.e_step().map_err(FitError::step("evaluate the model of the checkpoint"))?;
        }
        Ok(trainer)
    }

    fn is_over(&self) -> bool {
        let TrainingState { iteration, best_iteration, ref stopped, .. } = self.state;
        let no_progress = self.task.valid.is_some() && iteration >= best_iteration + PATIENCE;
        stopped.is_some() || no_progress || iteration >= self.task.params.n_iterations
    }

    /// One iteration of EM. If it fails, training stops with the best model so far.
    fn step(&mut self, watch: &mut Watch) -> Result<(), FitError> {
        if let Err(error) = self.advance() {
            self.state.stopped = Some(error.to_string());
            return Ok(());
        }
        self.report(watch)
    }

    fn advance(&mut self) -> Result<(), NumericError> {
        let expected = self.expected.take().expect("the current model is measured");
        let next = m_step(&self.current, expected, self.task.moments.null_vector())?;
        self.current = Arc::new(next);
        self.state.iteration += 1;
        self.state.n_clipped += self.current.n_clipped;
        self.measure()
    }

    /// The E step under the current model, which also measures its gains.
    fn e_step(&mut self) -> Result<StateMoments, NumericError> {
        let Task { params, moments, .. } = self.task;
        let (model, c) = (self.current.dynamics(), &self.current.c);
        let steady = SteadyState::of(&model)?;
        let word_terms = match self.state.iteration < params.n_iterations {
            true => WordTerms::Compute,
            false => WordTerms::Skip,
        };
        let expected = expectations(*moments, &model, &steady, c, params.lags, word_terms)?;
        let state_moments = expected.moments.clone();
        self.expected = Some(expected);
        self.last_valid_gain = match self.task.valid {
            None => None,
            Some(valid) => {
                let gain = TextGain::new(&model, &steady, c, moments.mu());
                let sum =
                    gain.of(valid.tokens(), &Run::all(valid, params.boundary, warm_up(&steady)));
                if !sum.is_finite() {
                    return Err(NumericError::NotConverged("the filter"));
                }
                Some(sum / valid.n_tokens().max(1) as f64)
            }
        };
        Ok(state_moments)
    }

    /// Measures the current model, and keeps it if it is the best so far.
    fn measure(&mut self) -> Result<(), NumericError> {
        let moments = self.e_step()?;
        let gain = self.expected.as_ref().expect("`e_step` sets it").gain;
        if self.state.iteration > 0 {
            let fall = (self.state.last_gain - gain) / self.state.last_gain.abs();
            // A gain of exactly zero has no relative decrease.
            let fall = if fall.is_finite() { fall } else { 0.0 };
            self.state.worst_fall = self.state.worst_fall.max(fall);
        }
        self.state.last_gain = gain;
        // Without held-out text the last model is kept: the gain on the training text only grows.
        let is_best = match (self.last_valid_gain, self.state.valid_gain) {
            (Some(gain), Some(best)) => gain > best,
            _ => true,
        };
        if is_best {
            self.best = Some(Measured { model: Arc::clone(&self.current), moments });
            self.state.best_iteration = self.state.iteration;
            self.state.gain = gain;
            self.state.valid_gain = self.last_valid_gain;
        }
        Ok(())
    }

    fn report(&mut self, watch: &mut Watch) -> Result<(), FitError> {
        self.state.seconds += self.started.elapsed().as_secs_f64();
        self.started = Instant::now();
        let mut metrics = vec![("gain", self.state.last_gain)];
        metrics.extend(self.last_valid_gain.map(|gain| ("valid_gain", gain)));
        let best = self.best.as_ref().expect("the initial model is measured");
        let checkpoint = || Ok(checkpoint::save(self.task, &self.state, &self.current, best));
        Progress {
            phase: "learn",
            done: self.state.iteration as u64,
            total: Some(self.task.params.n_iterations as u64),
            unit: "iterations",
            metrics: &metrics,
            checkpoint: Some(&checkpoint),
            ..Progress::default()
        }
        .report(watch)
    }
}

/// The reason why the decomposition stopped early.
enum Stop {
    Numeric(NumericError),
    Fit(FitError),
}

impl From<NumericError> for Stop {
    fn from(error: NumericError) -> Stop {
        Stop::Numeric(error)
    }
}

impl From<Stop> for FitError {
    fn from(stop: Stop) -> FitError {
        match stop {
            Stop::Numeric(error) => FitError::step("find the subspace")(error),
            Stop::Fit(error) => error,
        }
    }
}
