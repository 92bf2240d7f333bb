//! The training loop: a first model, then steps of EM, the best model on held-out text.

pub(crate) use crate::learn::checkpoint::{from_rows, to_rows};

use crate::learn::e_step::{Expectations, StateMoments, expectations};
use crate::learn::likelihood::{Run, TextGain};
use crate::learn::memory_budget::n_extra;
use crate::learn::moments::covariances::Covariances;
use crate::learn::moments::text_moments::Moments;
use crate::learn::subspace::{Sketch, decompose};
use crate::linalg::dense::NumericError;
use crate::params::LdsParams;
use crate::system::canonical::Canonical;
use crate::system::steady_state::Steady;
use latens_corpus::Sentences;
use latens_model::{Checkpoint, FitError, ParamError, Progress, Valid, Watch};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Instant;

/// How many steps may pass without a better model on held-out text.
const PATIENCE: usize = 2;

/// What is trained on.
pub(crate) struct Task<'a> {
    pub(crate) params: &'a Valid<LdsParams>,
    pub(crate) moments: &'a Moments<f32>,
    pub(crate) valid: Option<&'a Sentences>,
    pub(crate) fingerprint: u64,
    pub(crate) kind: &'static str,
}

/// A model with what was measured of it.
pub(crate) struct Measured {
    /// Often that of the trainer: there should not be two of it.
    pub(crate) model: Arc<Canonical<f32>>,
    pub(crate) moments: StateMoments,
}

/// What came out of training.
pub(crate) struct Learned {
    pub(crate) best: Measured,
    pub(crate) state: State,
}

/// How far training has come, apart from the models.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct State {
    /// Steps of EM that were taken.
    pub(crate) iteration: usize,
    pub(crate) dim: usize,
    pub(crate) best_iteration: usize,
    pub(crate) gain: f64,
    pub(crate) valid_gain: Option<f64>,
    /// Those of the last model.
    last_gain: f64,
    /// How many singular values were cut over all steps.
    pub(crate) n_clipped: usize,
    /// The largest singular value of the covariances, as a share of the largest possible one.
    pub(crate) correlation: f64,
    /// How much the gain fell at worst in a step, as a share of it.
    pub(crate) worst_fall: f64,
    /// Why no more steps could be taken, in words.
    pub(crate) stopped: Option<String>,
    pub(crate) seconds: f64,
}

pub(crate) struct Trainer<'a> {
    pub(super) task: &'a Task<'a>,
    pub(super) current: Arc<Canonical<f32>>,
    pub(super) expected: Option<Expectations<f32>>,
    pub(super) best: Option<Measured>,
    pub(super) state: State,
    pub(super) last_valid_gain: Option<f64>,
    pub(super) started: Instant,
}

pub(crate) fn learn(
    task: &Task<'_>,
    checkpoint: Option<&Checkpoint>,
    watch: &mut Watch,
) -> Result<Learned, FitError> {
    let mut trainer = match checkpoint {
        Some(checkpoint) => Trainer::restore(task, checkpoint)?,
        None => Trainer::begin(task, watch)?,
    };
    while !trainer.is_over() {
        trainer.step(watch)?;
    }
    let Trainer { best, state, .. } = trainer;
    Ok(Learned { best: best.expect("the first model was measured"), state })
}

impl<'a> Trainer<'a> {
    /// Makes the first model.
    fn begin(task: &'a Task<'a>, watch: &mut Watch) -> Result<Trainer<'a>, FitError> {
        let (params, started) = (task.params, Instant::now());
        let sketch = Sketch {
            n_extra: n_extra(params.dim, params.ssid_lags),
            n_powers: params.power_iterations,
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
                must: format!(
                    "at most {rank}, since the text's words follow each other in no more ways"
                ),
                got: params.dim.to_string(),
            }));
        }
        let correlation = decomposition.values[0] / params.ssid_lags as f64;
        let current = decomposition
            .identify(task.moments.null_vector())
            .map_err(FitError::step("make the first model"))?
            .model;
        drop(decomposition);
        let state = State {
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
        trainer.measure().map_err(FitError::step("measure the first model"))?;
        trainer.report(watch)?;
        Ok(trainer)
    }

    pub(super) fn is_over(&self) -> bool {
        let State { iteration, best_iteration, ref stopped, .. } = self.state;
        let waits = self.task.valid.is_some() && iteration >= best_iteration + PATIENCE;
        stopped.is_some() || waits || iteration >= self.task.params.n_iterations
    }

    /// One step of EM. A step that fails leaves the best model before it.
    fn step(&mut self, watch: &mut Watch) -> Result<(), FitError> {
        if let Err(error) = self.advance() {
            self.state.stopped = Some(error.to_string());
            return Ok(());
        }
        self.report(watch)
    }

    fn advance(&mut self) -> Result<(), NumericError> {
        let expected = self.expected.take().expect("the model was measured");
        let next = self.current.m_step(expected, self.task.moments.null_vector())?;
        self.current = Arc::new(next);
        self.state.iteration += 1;
        self.state.n_clipped += self.current.n_clipped;
        self.measure()
    }

    /// The E step at the current model, which measures it too.
    pub(super) fn expect(&mut self) -> Result<StateMoments, NumericError> {
        let Task { params, moments, .. } = self.task;
        let (model, c) = (self.current.dynamics(), &self.current.c);
        let steady = Steady::of(&model)?;
        let goes_on = self.state.iteration < params.n_iterations;
        let expected = expectations(*moments, &model, &steady, c, params.lags, goes_on)?;
        let state_moments = expected.moments.clone();
        self.expected = Some(expected);
        self.last_valid_gain = match self.task.valid {
            None => None,
            Some(valid) => {
                let gain = TextGain::new(&model, &steady, c, moments.mu());
                let sum = gain.of(valid.tokens(), &Run::all(valid, params.boundary));
                if !sum.is_finite() {
                    return Err(NumericError::NotConverging("the filter"));
                }
                Some(sum / valid.n_tokens().max(1) as f64)
            }
        };
        Ok(state_moments)
    }

    /// Measures the current model, and keeps it if it is the best so far.
    fn measure(&mut self) -> Result<(), NumericError> {
        let moments = self.expect()?;
        let gain = self.expected.as_ref().expect("just made").gain;
        if self.state.iteration > 0 {
            let fall = (self.state.last_gain - gain) / self.state.last_gain.abs();
            self.state.worst_fall = self.state.worst_fall.max(fall);
        }
        self.state.last_gain = gain;
        // Without other text the last model is taken: the gain of the text itself only grows.
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
        let checkpoint = || Ok(self.checkpoint());
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

/// Why the decomposition ended early.
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
