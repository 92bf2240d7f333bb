//! The training loop: stepwise EM over mini-batches, with restarts.

use crate::inference::smoother::Engine;
use crate::train::m_step::Evidence;
use crate::inference::mean_field::{MISSING, Stop};
use crate::distribution::Parameters;
use crate::params::{FhmmParams, Inference};
use crate::word_rows::Rows;
use crate::shape::Shape;
use crate::train::statistics::Statistics;
use latens_corpus::Sentences;
use latens_math::Rng;
use latens_model::{Checkpoint, CheckpointError, FitError, Progress, Valid, Watch};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// When a sentence is done while the model learns, and when it is used.
pub(crate) fn stop(sweeps: usize) -> Stop {
    Stop { sweeps, gain: 1e-4, change: 1e-3 }
}

/// Sweeps over a sentence when the model is used.
pub(crate) const SWEEPS_OF_USE: usize = 50;

/// How many epochs each first model is tried for.
const TRIAL_EPOCHS: usize = 2;

/// All that does not change while a model is trained.
pub(crate) struct Task<'a> {
    pub(crate) params: &'a Valid<FhmmParams>,
    pub(crate) shape: Shape,
    pub(crate) rows: &'a Rows,
    /// How often each row is seen, as a share of all tokens with a row.
    pub(crate) unigrams: Vec<f64>,
    /// b.
    pub(crate) base: Vec<f64>,
    pub(crate) train: &'a Sentences,
    pub(crate) valid: Option<&'a Sentences>,
    pub(crate) fingerprint: u64,
    pub(crate) kind: &'static str,
}

/// How far training has come, apart from the models.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct State {
    /// The first model that is being tried; as many as there are once one has been chosen.
    restart: usize,
    /// Epochs of this model that are over.
    pub(crate) epoch: usize,
    /// Mini-batches of this epoch that are over.
    batch: usize,
    /// Mini-batches of this model that are over.
    n_steps: u64,
    /// The bound, the tokens and the sweeps of this epoch so far, and how long its parts took.
    bound: f64,
    n_tokens: u64,
    token_sweeps: u64,
    e_seconds: f64,
    m_seconds: f64,
    /// What was measured of the last epoch.
    pub(crate) measured: Measured,
    /// The same of the best first model, and which one it is.
    best: Option<(usize, Measured)>,
}

/// What was measured of an epoch; bounds are in nats a token.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) train_bound: Option<f64>,
    pub(crate) valid_bound: Option<f64>,
    /// Sweeps a token, on average.
    pub(crate) sweeps: f64,
    pub(crate) e_seconds: f64,
    pub(crate) m_seconds: f64,
}

impl Measured {
    fn score(&self) -> f64 {
        self.valid_bound.or(self.train_bound).unwrap_or(f64::NEG_INFINITY)
    }
}

/// A model under training.
#[derive(Clone)]
struct Candidate {
    parameters: Parameters<f32>,
    statistics: Statistics,
    n_steps: u64,
}

/// What came out of training.
pub(crate) struct Fitted {
    pub(crate) engine: Engine<f32>,
    pub(crate) statistics: Statistics,
    pub(crate) state: State,
}

struct Trainer<'a> {
    task: &'a Task<'a>,
    engine: Engine<f32>,
    statistics: Statistics,
    best: Option<Candidate>,
    state: State,
}

pub(crate) fn fit(
    task: &Task<'_>,
    checkpoint: Option<&Checkpoint>,
    watch: &mut Watch,
) -> Result<Fitted, FitError> {
    let mut trainer = match checkpoint {
        Some(checkpoint) => Trainer::restore(task, checkpoint)?,
        None => Trainer::begin(task),
    };
    trainer.run(watch)?;
    let Trainer { engine, statistics, state, .. } = trainer;
    Ok(Fitted { engine, statistics, state })
}

/// Which random stream a choice comes from.
fn stream(params: &FhmmParams, kind: u64, number: usize) -> Rng {
    Rng::stream(params.seed ^ (kind << 56), number as u64)
}

const FIRST_MODEL: u64 = 1;
const ORDER: u64 = 2;

impl<'a> Trainer<'a> {
    fn begin(task: &'a Task<'a>) -> Trainer<'a> {
        // A single first model needs no trial.
        let restart = if task.params.restarts == 1 { 1 } else { 0 };
        let state = State { restart, ..State::default() };
        let (engine, statistics) = first_model(task, 0);
        Trainer { task, engine, statistics, best: None, state }
    }

    fn run(&mut self, watch: &mut Watch) -> Result<(), FitError> {
        let params = self.task.params;
        while self.state.restart < params.restarts {
            while self.state.epoch < TRIAL_EPOCHS.min(params.epochs) {
                self.epoch(watch)?;
            }
            self.end_trial();
        }
        while self.state.epoch < params.epochs {
            self.epoch(watch)?;
        }
        Ok(())
    }

    /// Keeps this first model if it is the best so far; goes on with the next one, or with the best of all.
    fn end_trial(&mut self) {
        let measured = self.state.measured;
        if self.state.best.is_none_or(|(_, best)| measured.score() > best.score()) {
            self.state.best = Some((self.state.restart, measured));
            self.best = Some(self.candidate());
        }
        let next = self.state.restart + 1;
        let best = self.state.best;
        if next < self.task.params.restarts {
            (self.engine, self.statistics) = first_model(self.task, next);
            self.state = State { restart: next, best, ..State::default() };
            return;
        }
        let Candidate { parameters, statistics, n_steps } =
            self.best.take().expect("one of them is the best");
        self.engine = Engine::new(parameters, self.engine.inference());
        self.statistics = statistics;
        let measured = best.map(|(_, measured)| measured).unwrap_or_default();
        let epoch = TRIAL_EPOCHS.min(self.task.params.epochs);
        self.state = State { restart: next, epoch, n_steps, measured, best, ..State::default() };
    }

    fn candidate(&self) -> Candidate {
        let parameters = self.engine.parameters().clone();
        Candidate { parameters, statistics: self.statistics.clone(), n_steps: self.state.n_steps }
    }

    fn epoch(&mut self, watch: &mut Watch) -> Result<(), FitError> {
        let batches = self.batches();
        while self.state.batch < batches.len() {
            self.step(&batches[self.state.batch]);
            self.state.batch += 1;
            if !self.state.bound.is_finite() {
                let (epoch, lower) = (self.state.epoch + 1, "n_layers");
                return Err(FitError::Diverged { epoch, lower });
            }
            if self.state.batch < batches.len() {
                self.report(batches.len(), false, watch)?;
            }
        }
        self.end_epoch();
        self.report(batches.len(), true, watch)
    }

    /// Which sentences are together in this epoch. A batch has them in the order of the text, so that one of all
    /// sentences is the text.
    fn batches(&self) -> Vec<Vec<u32>> {
        let n = self.task.train.len();
        let mut idxs: Vec<u32> = (0..n as u32).collect();
        let mut rng = stream(self.task.params, ORDER, self.state.epoch);
        for i in (1..n).rev() {
            idxs.swap(i, (rng.uniform() * (i + 1) as f64) as usize);
        }
        let batch = self.task.params.batch_size(n);
        let sorted = |idxs: &[u32]| {
            let mut idxs = idxs.to_vec();
            idxs.sort_unstable();
            idxs
        };
        idxs.chunks(batch).map(sorted).collect()
    }

    /// One step of stepwise EM.
    fn step(&mut self, batch: &[u32]) {
        let (task, started) = (self.task, Instant::now());
        let sentences = task.rows_of(batch.iter().map(|&idx| task.train.get(idx as usize)));
        let sentences: Vec<&[u32]> = sentences.iter().map(Vec::as_slice).collect();
        let expected = self.engine.expect(&sentences, stop(task.params.sweeps));
        let eta = match self.state.n_steps {
            0 => 1.0,
            k => (k as f64 + 2.0).powf(-task.params.step_power),
        };
        self.statistics.blend(eta, &sentences, &expected);
        let n_tokens: usize = sentences.iter().map(|sentence| sentence.len()).sum();
        self.state.bound += expected.bound;
        self.state.n_tokens += n_tokens as u64;
        self.state.token_sweeps += expected.token_sweeps;
        self.state.e_seconds += started.elapsed().as_secs_f64();
        let started = Instant::now();
        let evidence = Evidence {
            params: task.params,
            statistics: &self.statistics,
            n_tokens: task.train.n_tokens() as f64,
            unigrams: &task.unigrams,
            sentences: &sentences,
            expected: &expected,
            eta,
        };
        let parameters = evidence.maximize(&self.engine);
        self.engine = Engine::new(parameters, self.engine.inference());
        self.state.m_seconds += started.elapsed().as_secs_f64();
        self.state.n_steps += 1;
    }

    fn end_epoch(&mut self) {
        let State { bound, n_tokens, token_sweeps, e_seconds, m_seconds, .. } = self.state;
        let valid_bound = self.task.valid.map(|valid| self.task.bound(&self.engine, valid));
        self.state.measured = Measured {
            train_bound: Some(bound / n_tokens as f64),
            valid_bound,
            sweeps: token_sweeps as f64 / n_tokens as f64,
            e_seconds,
            m_seconds,
        };
        self.state.epoch += 1;
        self.state.batch = 0;
        (self.state.bound, self.state.n_tokens, self.state.token_sweeps) = (0.0, 0, 0);
        (self.state.e_seconds, self.state.m_seconds) = (0.0, 0.0);
    }

    fn report(
        &mut self,
        n_batches: usize,
        with_metrics: bool,
        watch: &mut Watch,
    ) -> Result<(), FitError> {
        let params = self.task.params;
        let is_trial = self.state.restart < params.restarts;
        let trial = TRIAL_EPOCHS.min(params.epochs);
        let epochs_before = if is_trial { self.state.restart * trial } else { 0 };
        let epochs = if is_trial { params.restarts * trial } else { params.epochs };
        let done = (epochs_before + self.state.epoch) * n_batches + self.state.batch;
        let measured = self.state.measured;
        let mut metrics = vec![];
        if with_metrics {
            metrics.extend(measured.train_bound.map(|bound| ("train_bound", bound)));
            metrics.extend(measured.valid_bound.map(|bound| ("valid_bound", bound)));
            metrics.push(("sweeps", measured.sweeps));
            metrics.push(("e_step_seconds", measured.e_seconds));
            metrics.push(("m_step_seconds", measured.m_seconds));
        }
        let save = || Ok(self.checkpoint());
        Progress {
            phase: if is_trial { "try first models" } else { "learn" },
            done: done as u64,
            total: Some((epochs * n_batches) as u64),
            unit: "batches",
            metrics: &metrics,
            iteration: Some((epochs_before + self.state.epoch) as u64),
            checkpoint: Some(&save),
        }
        .report(watch)
    }

    fn checkpoint(&self) -> Checkpoint {
        let Task { params, fingerprint, kind, .. } = *self.task;
        let mut checkpoint = Checkpoint::new(kind, params, fingerprint, &self.state);
        let current = [("", self.engine.parameters(), &self.statistics)];
        let best = self.best.iter().map(|best| ("best.", &best.parameters, &best.statistics));
        for (prefix, parameters, statistics) in current.into_iter().chain(best) {
            for (name, values) in weights(parameters) {
                let name = format!("{prefix}{name}");
                checkpoint = checkpoint.with_array(&name, &[values.len()], values);
            }
            for (name, values) in counts(statistics) {
                let name = format!("{prefix}{name}");
                checkpoint = checkpoint.with_array(&name, &[values.len()], values);
            }
        }
        if let Some(best) = &self.best {
            checkpoint = checkpoint.with_array("best.n_steps", &[1], &[best.n_steps]);
        }
        checkpoint
    }

    fn restore(task: &'a Task<'a>, checkpoint: &Checkpoint) -> Result<Trainer<'a>, FitError> {
        checkpoint.check_fits(task.kind, task.params, task.fingerprint, &[])?;
        let state: State = checkpoint.state()?;
        let (engine, like) = first_model(task, 0);
        let read = |prefix: &str| -> Result<(Parameters<f32>, Statistics), CheckpointError> {
            let (mut parameters, mut statistics) = (engine.parameters().clone(), like.clone());
            let sizes = weights(&parameters).map(|(name, values)| (name, values.len()));
            let arrays = [&mut parameters.start, &mut parameters.transition, &mut parameters.theta];
            for ((name, len), values) in sizes.into_iter().zip(arrays) {
                *values = checkpoint.array(&format!("{prefix}{name}"), &[len])?;
                check_finite(values.iter().all(|value| value.is_finite()))?;
            }
            let sizes = counts(&statistics).map(|(name, values)| (name, values.len()));
            let Statistics { start, pairs, words, emitting, .. } = &mut statistics;
            for ((name, len), values) in sizes.into_iter().zip([start, pairs, words, emitting]) {
                *values = checkpoint.array(&format!("{prefix}{name}"), &[len])?;
                check_finite(values.iter().all(|value| value.is_finite() && *value >= 0.0))?;
            }
            Ok((parameters, statistics))
        };
        let mut best = None;
        if state.best.is_some() && state.restart < task.params.restarts {
            let n_steps = checkpoint.array::<u64>("best.n_steps", &[1])?[0];
            let (parameters, statistics) = read("best.")?;
            best = Some(Candidate { parameters, statistics, n_steps });
        }
        let (parameters, statistics) = read("")?;
        let engine = Engine::new(parameters, engine.inference());
        Ok(Trainer { task, engine, statistics, best, state })
    }
}

fn check_finite(is_so: bool) -> Result<(), CheckpointError> {
    let problem = "it has numbers that no training makes";
    if is_so { Ok(()) } else { Err(CheckpointError::Invalid { problem }) }
}

fn weights(parameters: &Parameters<f32>) -> [(&'static str, &[f32]); 3] {
    let Parameters { start, transition, theta, .. } = parameters;
    [("start", start), ("transition", transition), ("scores", theta)]
}

fn counts(statistics: &Statistics) -> [(&'static str, &[f64]); 4] {
    let Statistics { start, pairs, words, emitting, .. } = statistics;
    [
        ("counts.start", start),
        ("counts.pairs", pairs),
        ("counts.words", words),
        ("counts.emitting", emitting),
    ]
}

fn first_model(task: &Task<'_>, restart: usize) -> (Engine<f32>, Statistics) {
    let inference = task.params.chosen_inference();
    let mut rng = stream(task.params, FIRST_MODEL, restart);
    let parameters = Parameters::random(task.shape, &task.base, &mut rng);
    let has_counts = matches!(inference, Inference::ExactMf | Inference::Exact);
    (Engine::new(parameters, inference), Statistics::new(task.shape, has_counts))
}

impl Task<'_> {
    /// Sentences as rows.
    pub(crate) fn rows_of<'s>(
        &self,
        sentences: impl Iterator<Item = &'s [latens_corpus::WordId]>,
    ) -> Vec<Vec<u32>> {
        sentences.map(|s| s.iter().map(|&word| self.rows.row(word)).collect()).collect()
    }

    /// The bound of a text's log-likelihood, in nats a token that the model has a place for.
    fn bound(&self, engine: &Engine<f32>, text: &Sentences) -> f64 {
        /// Sentences that are in memory as rows at a time.
        const SENTENCES: usize = 1000;
        let (mut sum, mut n_tokens) = (0.0, 0);
        for begin in (0..text.len()).step_by(SENTENCES) {
            let end = (begin + SENTENCES).min(text.len());
            let sentences = self.rows_of((begin..end).map(|idx| text.get(idx)));
            n_tokens += sentences.iter().flatten().filter(|&&row| row != MISSING).count();
            let sentences: Vec<&[u32]> = sentences.iter().map(Vec::as_slice).collect();
            sum += engine.bounds(&sentences, stop(SWEEPS_OF_USE));
        }
        sum / n_tokens.max(1) as f64
    }
}
