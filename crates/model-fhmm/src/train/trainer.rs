//! The training loop: stepwise EM over mini-batches, with restarts.

use crate::inference::convergence::Stop;
use crate::inference::smoother::Smoother;
use crate::train::checkpoint;
use crate::train::lazy_update::Turn;
use crate::train::m_step::Evidence;
use crate::train::state::{Candidate, Measured, ORDER, State, Trainer, initial_model, stream};
use crate::train::statistics::Statistics;
use crate::train::task::Task;
use latens_model::{Checkpoint, FitError, Progress, Watch};
use std::time::Instant;

/// Number of epochs that each initialization is trained for before the best is chosen.
const TRIAL_EPOCHS: usize = 2;

/// Result of training.
pub(crate) struct Fitted {
    pub(crate) smoother: Smoother<f32>,
    pub(crate) statistics: Statistics,
    pub(crate) state: State,
}

/// Trains a model from scratch or from a checkpoint.
pub(crate) fn fit(
    task: &Task<'_>,
    checkpoint: Option<&Checkpoint>,
    watch: &mut Watch,
) -> Result<Fitted, FitError> {
    let mut trainer = match checkpoint {
        Some(checkpoint) => checkpoint::restore(task, checkpoint)?,
        None => Trainer::start(task),
    };
    trainer.run(watch)?;
    let Trainer { smoother, statistics, state, .. } = trainer;
    if smoother.problem().is_some() {
        return Err(FitError::Diverged { epoch: state.epoch, lower: "n_layers" });
    }
    Ok(Fitted { smoother, statistics, state })
}

impl Trainer<'_> {
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

    /// Keeps this initialization if it is the best so far, then continues with the next one, or with the best of all.
    fn end_trial(&mut self) {
        let measured = self.state.measured;
        if self.state.best.is_none_or(|(_, best)| measured.score() > best.score()) {
            self.state.best = Some((self.state.restart, measured));
            self.best = Some(self.candidate());
        }
        let next = self.state.restart + 1;
        let best = self.state.best;
        if next < self.task.params.restarts {
            (self.smoother, self.statistics) = initial_model(self.task, next);
            self.state = State { restart: next, best, ..State::default() };
            return;
        }
        let Candidate { distribution, statistics, n_steps } =
            self.best.take().expect("one initialization is the best");
        self.smoother = Smoother::new(distribution, self.smoother.inference());
        self.statistics = statistics;
        let measured = best.map(|(_, measured)| measured).unwrap_or_default();
        let epoch = TRIAL_EPOCHS.min(self.task.params.epochs);
        self.state = State { restart: next, epoch, n_steps, measured, best, ..State::default() };
    }

    fn candidate(&self) -> Candidate {
        let distribution = self.smoother.distribution().clone();
        Candidate { distribution, statistics: self.statistics.clone(), n_steps: self.state.n_steps }
    }

    fn epoch(&mut self, watch: &mut Watch) -> Result<(), FitError> {
        let batches = self.batches();
        while self.state.batch < batches.len() {
            self.step(&batches[self.state.batch], batches.len());
            self.state.batch += 1;
            if !self.state.bound.is_finite() {
                let (epoch, lower) = (self.state.epoch + 1, "n_layers");
                return Err(FitError::Diverged { epoch, lower });
            }
            if self.state.batch < batches.len() {
                self.report(batches.len(), &[], watch)?;
            }
        }
        self.end_epoch();
        let metrics = self.state.measured.metrics();
        self.report(batches.len(), &metrics, watch)
    }

    /// Random batches of this epoch, as sentence indices. Each batch keeps the order of the text, so that a batch of
    /// all sentences is the text itself.
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

    /// One iteration of stepwise EM: an E-step on a batch, then an M-step.
    fn step(&mut self, batch: &[u32], n_batches: usize) {
        let (task, started) = (self.task, Instant::now());
        let sentences = task.rows_of(batch.iter().map(|&idx| task.train.get(idx as usize)));
        let sentences: Vec<&[u32]> = sentences.iter().map(Vec::as_slice).collect();
        let expected = self.smoother.expect(&sentences, Stop::after(task.params.sweeps));
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
        let n_words = task.shape.n_words;
        let n_train = task.train.n_tokens();
        let is_of_all = Turn::is_of_all(self.state.batch, n_batches, n_words, n_train as u64);
        let turn = if is_of_all { Turn::All } else { Turn::of_batch(&sentences) };
        let evidence = Evidence {
            params: task.params,
            statistics: &self.statistics,
            n_tokens: n_train as f64,
            unigrams: &task.unigrams,
            sentences: &sentences,
            expected: &expected,
            eta,
            turn: &turn,
        };
        evidence.advance(&mut self.smoother);
        self.state.m_seconds += started.elapsed().as_secs_f64();
        self.state.n_steps += 1;
    }

    fn end_epoch(&mut self) {
        let State { bound, n_tokens, token_sweeps, e_seconds, m_seconds, .. } = self.state;
        // A forged checkpoint may end an epoch without tokens.
        let n_tokens = n_tokens.max(1) as f64;
        let valid_bound = self.task.valid.map(|valid| self.task.bound(&self.smoother, valid));
        self.state.measured = Measured {
            train_bound: Some(bound / n_tokens),
            valid_bound,
            sweeps: token_sweeps as f64 / n_tokens,
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
        metrics: &[(&'static str, f64)],
        watch: &mut Watch,
    ) -> Result<(), FitError> {
        let params = self.task.params;
        let is_trial = self.state.restart < params.restarts;
        let trial = TRIAL_EPOCHS.min(params.epochs);
        let epochs_before = if is_trial { self.state.restart * trial } else { 0 };
        let epochs = if is_trial { params.restarts * trial } else { params.epochs };
        let done = (epochs_before + self.state.epoch) * n_batches + self.state.batch;
        let save = || Ok(checkpoint::save(self));
        Progress {
            phase: if is_trial { "try initializations" } else { "learn" },
            done: done as u64,
            total: Some((epochs * n_batches) as u64),
            unit: "batches",
            metrics,
            iteration: Some((epochs_before + self.state.epoch) as u64),
            checkpoint: Some(&save),
        }
        .report(watch)
    }
}
