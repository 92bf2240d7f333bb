//! The shared training loop over epochs of mini-batches.

use super::checkpoint::{Checkpoint, CheckpointError};
use super::epochs::Epochs;
use super::error::FitError;
use super::progress::{MakeCheckpoint, Progress, Watch};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Instant;

/// A model in training. It owns the weights and the optimizer state, on any device.
///
/// Steps have two halves, so that the next mini-batch is prepared while a device processes the current one.
pub trait Learner {
    /// A mini-batch with its random choices, ready for its step.
    type Batch;
    /// The state of the learning-rate schedule, which checkpoints store.
    type Schedule: Clone;
    /// The weights of the trained model.
    type Weights;

    /// The maximum number of epochs.
    fn n_epochs(&self) -> usize;

    /// Starts an epoch, or the rest of one after a checkpoint. Returns the number of mini-batches in the whole epoch.
    fn begin_epoch(&mut self, epochs: &Epochs) -> Result<usize, FitError>;

    /// Prepares a mini-batch of the current epoch.
    fn prepare(&mut self, epochs: &Epochs, batch_idx: usize) -> Self::Batch;

    /// Learning rate of the next step, or `None` if training has no learning rate.
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

    /// Completes the epoch. Returns Σ ln p of the epoch if steps do not report it.
    fn end_epoch(&mut self) -> Result<Option<f64>, FitError> {
        Ok(None)
    }

    /// −ln p per token of the validation text, or `None` without one.
    fn valid_loss(&mut self) -> Result<Option<f64>, FitError>;

    /// Whether the weights are unusable, given the training loss in nats per token.
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

    /// Whether the last weights are usable, if there is no validation text to show it.
    fn check_last(&mut self) -> Result<bool, FitError> {
        Ok(true)
    }

    /// Called once after the last epoch, unless an error ended the training.
    fn finish(&mut self) -> Result<(), FitError> {
        Ok(())
    }

    /// Whether training can resume from the middle of an epoch.
    const RESUMES_WITHIN_EPOCHS: bool = true;

    /// Creates a checkpoint of the current state.
    fn checkpoint(
        &self,
        state: &TrainingState<Self::Schedule>,
        best: Option<&Arc<Self::Weights>>,
    ) -> Result<Checkpoint, FitError>;

    /// The error if training diverged before it had usable weights.
    fn divergence(&self, epoch: usize) -> FitError {
        FitError::Diverged { epoch, lower: "learning_rate" }
    }

    /// What to change if no weights can score the validation text.
    fn advice(&self) -> &'static str {
        "lower `learning_rate`"
    }
}

/// The state of a training run except the weights.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TrainingState<S> {
    /// Completed epochs and steps, and the best epoch so far.
    #[serde(flatten)]
    pub epochs: Epochs,
    /// The state of the learning-rate schedule.
    #[serde(flatten)]
    pub schedule: S,
}

/// Result of an epoch.
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
    /// Continue with the next epoch.
    Continue,
    /// Stop: the schedule expects no further improvement.
    Stop,
    /// Stop: the weights are unusable.
    Diverged,
}

/// Trains a [`Learner`] for some epochs and keeps the best weights on the validation text.
pub struct Trainer<L: Learner> {
    learner: L,
    state: TrainingState<L::Schedule>,
    /// The weights of the best epoch so far.
    best: Option<Arc<L::Weights>>,
    n_batches: usize,
    /// Whether the last weights give the validation text a perplexity that is not finite.
    is_unscorable: bool,
}

impl<L: Learner> Trainer<L>
where
    L::Weights: Clone,
{
    /// Creates a trainer with a new state, or with the state and best weights of a checkpoint.
    pub fn new(
        learner: L,
        state: TrainingState<L::Schedule>,
        best: Option<L::Weights>,
    ) -> Trainer<L> {
        Trainer { learner, state, best: best.map(Arc::new), n_batches: 0, is_unscorable: false }
    }

    /// Trains until all epochs are completed, the schedule stops, the loss diverges, or the callback stops. Returns the
    /// best weights on the validation text, or the last weights without one, and facts for the model file.
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
        self.learner.finish()?;
        let facts = self.state.epochs.facts();
        let weights = match (self.best, self.state.epochs.diverged_in_epoch) {
            (Some(best), _) => Arc::unwrap_or_clone(best),
            (None, Some(epoch)) if self.is_unscorable => {
                let advice = self.learner.advice();
                let problem = format!("its perplexity is not finite after epoch {epoch}; {advice}");
                return Err(FitError::Unscorable { problem });
            }
            (None, Some(epoch)) => return Err(self.learner.divergence(epoch)),
            (None, None) => self.learner.weights()?,
        };
        Ok((weights, facts))
    }

    fn epoch(&mut self, watch: &mut Watch) -> Result<Outcome, FitError> {
        self.n_batches = match self.learner.begin_epoch(&self.state.epochs) {
            // What was learned before must not be lost.
            Err(FitError::Interrupted) => {
                self.report(&[], true, watch)?;
                return Err(FitError::Interrupted);
            }
            n_batches => n_batches?,
        };
        let first = self.state.epochs.batch;
        if first > self.n_batches {
            let problem = "more mini-batches are completed than an epoch has";
            return Err(CheckpointError::Invalid { problem }.into());
        }
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

    /// Evaluates the model, keeps the weights if they are the best so far, and ends the epoch.
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
        // A finite loss may still have an infinite perplexity.
        self.is_unscorable = valid_loss.is_some_and(|loss| !loss.exp().is_finite());
        let is_useless = self.learner.is_useless(train_loss) || self.is_unscorable;
        if is_useless || outcome == Outcome::Diverged {
            outcome = self.diverge();
        }
        let mut metrics = vec![("train_perplexity", train_loss.exp())];
        metrics.extend(valid_loss.map(|loss| ("valid_perplexity", loss.exp())));
        metrics.extend(learning_rate.map(|rate| ("learning_rate", rate)));
        metrics.push(("seconds_per_epoch", self.state.epochs.seconds));
        self.state.epochs.end();
        // Training never resumes from unusable weights.
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
