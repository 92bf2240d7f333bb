//! The loop over epochs of mini-batches that iterative trainers share.

use super::checkpoint::Checkpoint;
use super::epochs::Epochs;
use super::error::FitError;
use super::progress::{MakeCheckpoint, Progress, Watch};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Instant;

/// A model under training, as [`Trainer`] sees it: it owns the weights and the state of the optimizer, on any device.
///
/// A step has two halves, so that the next mini-batch is prepared while a device works on the present one.
pub trait Learner {
    /// A mini-batch with everything that was drawn for it, ready for its step.
    type Batch;
    /// The state of the learning-rate schedule, which checkpoints store.
    type Schedule: Clone;
    /// What the trained model consists of.
    type Weights;

    /// The maximum number of epochs.
    fn n_epochs(&self) -> usize;

    /// Starts an epoch, or the rest of one after a checkpoint. Returns the number of mini-batches in the whole epoch.
    fn begin_epoch(&mut self, epochs: &Epochs) -> Result<usize, FitError>;

    /// Prepares a mini-batch of the present epoch.
    fn prepare(&mut self, epochs: &Epochs, batch_idx: usize) -> Self::Batch;

    /// The learning rate of the next step; `None` if training has no learning rate.
    fn learning_rate(&self, state: &TrainingState<Self::Schedule>, n_batches: usize)
    -> Option<f64>;

    /// Starts the step of a mini-batch.
    fn begin_step(
        &mut self,
        batch: &Self::Batch,
        learning_rate: Option<f64>,
    ) -> Result<(), FitError>;

    /// Completes the step. Returns Σ ln p of the mini-batch before the step and the number of its tokens. A value that
    /// is not finite ends the training; the weights are then those before the step.
    fn end_step(&mut self, batch: &Self::Batch) -> Result<(f64, usize), FitError>;

    /// Completes the epoch. Returns Σ ln p of the epoch where steps do not tell it.
    fn end_epoch(&mut self) -> Result<Option<f64>, FitError> {
        Ok(None)
    }

    /// −ln p per token of the validation text; `None` if there is none.
    fn valid_loss(&mut self) -> Result<Option<f64>, FitError>;

    /// Whether a training loss, in nats per token, means that the weights are of no use.
    fn is_useless(&self, train_loss: f64) -> bool {
        !train_loss.is_finite()
    }

    /// Updates the schedule after an epoch, and decides how to continue.
    fn judge(
        &mut self,
        schedule: &mut Self::Schedule,
        result: &EpochResult<'_, Self::Weights>,
    ) -> Result<Outcome, FitError>;

    /// A copy of the weights.
    fn weights(&self) -> Result<Self::Weights, FitError>;

    /// Whether the last weights are usable, where no validation text has shown it.
    fn check_last(&mut self) -> Result<bool, FitError> {
        Ok(true)
    }

    /// Whether training can continue from the middle of an epoch.
    const RESUMES_WITHIN_EPOCHS: bool = true;

    /// A checkpoint of this moment.
    fn checkpoint(
        &self,
        state: &TrainingState<Self::Schedule>,
        best: Option<&Arc<Self::Weights>>,
    ) -> Result<Checkpoint, FitError>;

    /// The error for a training that diverged before it had any usable weights.
    fn divergence(&self, epoch: usize) -> FitError {
        FitError::Diverged { epoch, lower: "learning_rate" }
    }
}

/// The progress of a training, apart from weights.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TrainingState<S> {
    /// Completed epochs and steps, and the best epoch so far.
    #[serde(flatten)]
    pub epochs: Epochs,
    /// The state of the learning-rate schedule.
    #[serde(flatten)]
    pub schedule: S,
}

/// What an epoch achieved.
#[derive(Debug)]
pub struct EpochResult<'a, W> {
    /// Training loss in nats per token.
    pub train_loss: f64,
    /// Validation loss in nats per token, if there is a validation text.
    pub valid_loss: Option<f64>,
    /// Whether this is the best validation loss so far.
    pub is_best: bool,
    /// The weights of the best epoch so far.
    pub best: Option<&'a W>,
}

/// How training continues after an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With the next epoch.
    Continue,
    /// Not at all: the schedule expects no further gain.
    Stop,
    /// Not at all: the weights are of no use.
    Diverged,
}

/// Trains a [`Learner`] for some epochs and keeps the best weights on the validation text.
pub struct Trainer<L: Learner> {
    learner: L,
    state: TrainingState<L::Schedule>,
    /// The weights of the best epoch so far.
    best: Option<Arc<L::Weights>>,
    n_batches: usize,
}

impl<L: Learner> Trainer<L>
where
    L::Weights: Clone,
{
    /// A trainer in this state: a new one, or that of a checkpoint with the best weights so far.
    pub fn new(
        learner: L,
        state: TrainingState<L::Schedule>,
        best: Option<L::Weights>,
    ) -> Trainer<L> {
        Trainer { learner, state, best: best.map(Arc::new), n_batches: 0 }
    }

    /// Trains until all epochs are over, the schedule stops, the loss diverges, or the watcher interrupts. Returns the
    /// best weights on the validation text, or the last ones without it, and facts for the model file.
    pub fn run(mut self, watch: &mut Watch) -> Result<(L::Weights, Map<String, Value>), FitError> {
        let mut outcome = Outcome::Continue;
        while outcome == Outcome::Continue && self.state.epochs.goes_on(self.learner.n_epochs()) {
            outcome = self.epoch(watch)?;
        }
        let epochs = &mut self.state.epochs;
        let is_unproven = self.best.is_none() && epochs.diverged_in_epoch.is_none();
        if is_unproven && epochs.epoch > 0 && !self.learner.check_last()? {
            epochs.diverged_in_epoch = Some(epochs.epoch);
        }
        let facts = self.state.epochs.facts();
        let weights = match (self.best, self.state.epochs.diverged_in_epoch) {
            (Some(best), _) => Arc::unwrap_or_clone(best),
            (None, Some(epoch)) => return Err(self.learner.divergence(epoch)),
            (None, None) => self.learner.weights()?,
        };
        Ok((weights, facts))
    }

    fn epoch(&mut self, watch: &mut Watch) -> Result<Outcome, FitError> {
        self.n_batches = self.learner.begin_epoch(&self.state.epochs)?;
        let first = self.state.epochs.batch;
        let mut started = Instant::now();
        let mut next = (first < self.n_batches).then(|| self.prepare(first));
        while let Some(batch) = next.take() {
            let learning_rate = self.learner.learning_rate(&self.state, self.n_batches);
            self.learner.begin_step(&batch, learning_rate)?;
            let following = self.state.epochs.batch + 1;
            next = (following < self.n_batches).then(|| self.prepare(following));
            let (log_prob, n_tokens) = self.learner.end_step(&batch)?;
            if !log_prob.is_finite() {
                return Ok(self.diverge());
            }
            self.state.epochs.step(log_prob, n_tokens, started.elapsed());
            started = Instant::now();
            if next.is_some() {
                self.report(&[], L::RESUMES_WITHIN_EPOCHS, watch)?;
            }
        }
        if let Some(log_prob) = self.learner.end_epoch()? {
            if !log_prob.is_finite() {
                return Ok(self.diverge());
            }
            self.state.epochs.add(log_prob, started.elapsed());
        }
        self.end_epoch(watch)
    }

    fn prepare(&mut self, batch_idx: usize) -> L::Batch {
        self.learner.prepare(&self.state.epochs, batch_idx)
    }

    fn diverge(&mut self) -> Outcome {
        self.state.epochs.diverged_in_epoch = Some(self.state.epochs.epoch + 1);
        Outcome::Diverged
    }

    /// Measures the model, keeps it if it is the best so far, and starts the next epoch.
    fn end_epoch(&mut self, watch: &mut Watch) -> Result<Outcome, FitError> {
        let learning_rate = self.learner.learning_rate(&self.state, self.n_batches);
        let train_loss = self.state.epochs.loss();
        let valid_loss = self.learner.valid_loss()?;
        let is_best = !self.learner.is_useless(train_loss)
            && valid_loss.is_some_and(|loss| self.state.epochs.observe(loss.exp()));
        if is_best {
            self.best = Some(Arc::new(self.learner.weights()?));
        }
        let result = EpochResult { train_loss, valid_loss, is_best, best: self.best.as_deref() };
        let mut outcome = self.learner.judge(&mut self.state.schedule, &result)?;
        if self.learner.is_useless(train_loss) || outcome == Outcome::Diverged {
            outcome = self.diverge();
        }
        let mut metrics = vec![("train_perplexity", train_loss.exp())];
        metrics.extend(valid_loss.map(|loss| ("valid_perplexity", loss.exp())));
        metrics.extend(learning_rate.map(|rate| ("learning_rate", rate)));
        metrics.push(("seconds_per_epoch", self.state.epochs.seconds));
        self.state.epochs.end();
        // Training never continues from useless weights.
        self.report(&metrics, outcome != Outcome::Diverged, watch)?;
        Ok(outcome)
    }

    fn report(
        &self,
        metrics: &[(&'static str, f64)],
        offers_checkpoint: bool,
        watch: &mut Watch,
    ) -> Result<(), FitError> {
        let checkpoint = || self.learner.checkpoint(&self.state, self.best.as_ref());
        let checkpoint: Option<&MakeCheckpoint<'_>> = offers_checkpoint.then_some(&checkpoint);
        let progress = self.state.epochs.progress(self.learner.n_epochs(), self.n_batches);
        Progress { metrics, checkpoint, ..progress }.report(watch)
    }
}
