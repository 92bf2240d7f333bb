//! Progress of training in epochs of mini-batches.

use crate::fit::error::FitError;
use crate::fit::progress::Progress;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Progress of training in epochs of mini-batches, and the best epoch so far.
///
/// Checkpoints store it together with the learning-rate schedule and the weights, which the trainer holds.
///
/// ```
/// use latens_model::{Epochs, Progress, unwatched};
/// use std::time::Duration;
///
/// let (n_epochs, n_batches) = (2, 3);
/// let (mut epochs, mut best, mut weight) = (Epochs::default(), None, 0.0);
/// while epochs.goes_on(n_epochs) {
///     while epochs.batch < n_batches {
///         weight += 1.0;
///         epochs.step(/* log_prob */ -8.0, /* n_tokens */ 4, Duration::from_millis(5));
///     }
///     let (perplexity, held_out) = (epochs.loss().exp(), 6.0 + weight);
///     if epochs.observe(held_out) {
///         best = Some(weight);
///     }
///     epochs.end();
///     let metrics = &[("train_perplexity", perplexity), ("valid_perplexity", held_out)];
///     Progress { metrics, ..epochs.progress(n_epochs, n_batches) }.report(&mut unwatched)?;
/// }
/// assert_eq!(epochs.facts()["best_epoch"], 1);
/// assert_eq!(epochs.best_or_last(best, || Ok(weight))?, 3.0);
/// # Ok::<(), latens_model::FitError>(())
/// ```
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Epochs {
    /// Number of completed epochs.
    pub epoch: usize,
    /// Number of completed mini-batches in the current epoch.
    pub batch: usize,
    /// Σ ln p and number of tokens of the current epoch.
    log_prob: f64,
    n_tokens: u64,
    /// Duration of the current epoch's steps, in seconds.
    pub seconds: f64,
    /// Number of steps in all epochs.
    pub n_steps: u64,
    /// One-based index of the epoch with the lowest validation perplexity.
    pub best_epoch: Option<usize>,
    best_perplexity: Option<f64>,
    /// Training perplexity of the epoch whose weights are kept: the best, or the last without a validation text.
    train_perplexity: Option<f64>,
    seconds_per_epoch: Option<f64>,
    /// One-based index of the epoch in which the loss diverged. Checkpoints never contain it.
    #[serde(skip)]
    pub diverged_in_epoch: Option<usize>,
}

impl Epochs {
    /// Whether epochs are left and the loss has not diverged.
    pub fn goes_on(&self, n_epochs: usize) -> bool {
        self.epoch < n_epochs && self.diverged_in_epoch.is_none()
    }

    /// Records a completed mini-batch: Σ ln p of its tokens and its duration.
    pub fn step(&mut self, log_prob: f64, n_tokens: usize, took: Duration) {
        self.batch += 1;
        // A forged checkpoint may contain any numbers.
        self.n_steps = self.n_steps.saturating_add(1);
        self.log_prob += log_prob;
        self.n_tokens = self.n_tokens.saturating_add(n_tokens as u64);
        self.seconds += took.as_secs_f64();
    }

    /// Adds Σ ln p of the epoch if steps do not report it, and the time spent computing it.
    pub fn add(&mut self, log_prob: f64, took: Duration) {
        self.log_prob += log_prob;
        self.seconds += took.as_secs_f64();
    }

    /// Mean −ln p per token of the current epoch so far.
    pub fn loss(&self) -> f64 {
        -self.log_prob / self.n_tokens.max(1) as f64
    }

    /// Records the validation perplexity of the current epoch. Returns whether it is the best so far, in which case the
    /// trainer should keep its weights.
    pub fn observe(&mut self, perplexity: f64) -> bool {
        let is_better = self.best_perplexity.is_none_or(|best| perplexity < best);
        let is_best = is_better && perplexity.is_finite();
        if is_best {
            self.best_perplexity = Some(perplexity);
            self.best_epoch = Some(self.epoch + 1);
        }
        is_best
    }

    /// Ends the current epoch and begins the next.
    pub fn end(&mut self) {
        if self.best_epoch.is_none_or(|best| best == self.epoch + 1) {
            self.train_perplexity = Some(self.loss().exp()).filter(|value| value.is_finite());
        }
        self.seconds_per_epoch = Some(self.seconds);
        self.epoch += 1;
        (self.batch, self.log_prob, self.n_tokens, self.seconds) = (0, 0.0, 0, 0.0);
    }

    /// The current progress. The trainer adds metrics and a checkpoint function.
    pub fn progress<'a>(&self, n_epochs: usize, n_batches: usize) -> Progress<'a> {
        Progress {
            phase: "learn",
            done: (self.epoch * n_batches + self.batch) as u64,
            total: Some((n_epochs * n_batches) as u64),
            unit: "batches",
            iteration: Some(self.epoch as u64),
            ..Progress::default()
        }
    }

    /// Returns the best weights or, if there are none, the last weights. Fails if training diverged before that.
    pub fn best_or_last<W>(
        &self,
        best: Option<W>,
        last: impl FnOnce() -> Result<W, FitError>,
    ) -> Result<W, FitError> {
        match (best, self.diverged_in_epoch) {
            (Some(best), _) => Ok(best),
            (None, Some(epoch)) => Err(FitError::Diverged { epoch, lower: "learning_rate" }),
            (None, None) => last(),
        }
    }

    /// Restores the state after some completed epochs from another checkpoint format.
    pub fn after(
        epoch: usize,
        seconds_per_epoch: Option<f64>,
        train_perplexity: Option<f64>,
    ) -> Epochs {
        Epochs { epoch, seconds_per_epoch, train_perplexity, ..Epochs::default() }
    }

    /// Restores the one-based index of the best epoch and its validation perplexity.
    pub fn set_best(&mut self, epoch: usize, perplexity: f64) {
        (self.best_epoch, self.best_perplexity) = (Some(epoch), Some(perplexity));
    }

    /// The lowest validation perplexity so far.
    pub fn best_perplexity(&self) -> Option<f64> {
        self.best_perplexity
    }

    /// The training perplexity of the epoch whose weights are kept.
    pub fn train_perplexity(&self) -> Option<f64> {
        self.train_perplexity
    }

    /// Duration of the last completed epoch, in seconds.
    pub fn seconds_per_epoch(&self) -> Option<f64> {
        self.seconds_per_epoch
    }

    /// Facts about the training run for the model file.
    pub fn facts(&self) -> Map<String, Value> {
        let facts = [
            ("epochs", Some(json!(self.epoch))),
            ("train_perplexity", self.train_perplexity.map(Value::from)),
            ("valid_perplexity", self.best_perplexity.map(Value::from)),
            ("best_epoch", self.best_epoch.map(Value::from)),
            ("seconds_per_epoch", self.seconds_per_epoch.map(Value::from)),
            ("diverged_in_epoch", self.diverged_in_epoch.map(Value::from)),
        ];
        let known = |(name, value): (&str, Option<Value>)| Some((name.to_owned(), value?));
        facts.into_iter().filter_map(known).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_two_steps() -> Epochs {
        let mut epochs = Epochs::default();
        epochs.step(-6.0, 2, Duration::from_millis(250));
        epochs.step(-4.0, 3, Duration::from_millis(500));
        epochs
    }

    #[test]
    fn a_new_epoch_resets_the_counts_of_the_previous_one() {
        let mut epochs = after_two_steps();
        assert_eq!((epochs.batch, epochs.n_steps, epochs.seconds), (2, 2, 0.75));
        assert_eq!(epochs.loss(), 10.0 / 5.0);
        epochs.end();
        assert_eq!((epochs.epoch, epochs.batch, epochs.n_steps, epochs.seconds), (1, 0, 2, 0.0));
        assert_eq!(epochs.loss(), 0.0);
        epochs.step(-3.0, 1, Duration::ZERO);
        assert_eq!((epochs.loss(), epochs.n_steps), (3.0, 3));
    }

    #[test]
    fn training_continues_until_all_epochs_are_completed_or_the_loss_diverges() {
        let mut epochs = after_two_steps();
        assert!(epochs.goes_on(1));
        epochs.end();
        assert!(!epochs.goes_on(1) && epochs.goes_on(2));
        epochs.diverged_in_epoch = Some(2);
        assert!(!epochs.goes_on(2));
    }

    #[test]
    fn only_a_finite_perplexity_below_all_previous_ones_is_the_best() {
        let mut epochs = Epochs::default();
        let mut seen = Vec::new();
        for perplexity in [f64::NAN, f64::INFINITY, 9.0, 9.0, f64::NAN, 8.0, 8.5] {
            epochs.step(-perplexity.min(10.0), 2, Duration::ZERO);
            seen.push(epochs.observe(perplexity));
            epochs.end();
        }
        assert_eq!(seen, [false, false, true, false, false, true, false]);
        let facts = json!(epochs.facts());
        let expected = json!({
            "epochs": 7, "best_epoch": 6, "valid_perplexity": 8.0, "seconds_per_epoch": 0.0,
            "train_perplexity": 4f64.exp(),
        });
        assert_eq!(facts, expected);
    }

    #[test]
    fn without_a_validation_text_the_last_epoch_counts_unless_it_diverged() {
        let mut epochs = after_two_steps();
        epochs.end();
        epochs.step(-3.0, 1, Duration::ZERO);
        epochs.end();
        assert_eq!(epochs.facts()["train_perplexity"], 3f64.exp());
        epochs.step(f64::NEG_INFINITY, 1, Duration::ZERO);
        epochs.end();
        assert!(!epochs.facts().contains_key("train_perplexity"));
    }

    #[test]
    fn progress_counts_the_mini_batches_of_all_epochs() {
        let mut epochs = after_two_steps();
        epochs.end();
        epochs.step(-1.0, 1, Duration::ZERO);
        let progress = epochs.progress(3, 2);
        assert_eq!((progress.done, progress.total, progress.iteration), (3, Some(6), Some(1)));
    }

    #[test]
    fn the_last_weights_are_used_only_without_best_weights_and_divergence() {
        let mut epochs = Epochs::default();
        assert_eq!(epochs.best_or_last(Some("best"), || Ok("last")).unwrap(), "best");
        assert_eq!(epochs.best_or_last(None, || Ok("last")).unwrap(), "last");
        epochs.diverged_in_epoch = Some(4);
        assert_eq!(epochs.best_or_last(Some("best"), || Ok("last")).unwrap(), "best");
        let error = epochs.best_or_last(None, || Ok("last")).unwrap_err();
        assert!(matches!(error, FitError::Diverged { epoch: 4, .. }), "{error}");
        assert_eq!(epochs.facts()["diverged_in_epoch"], 4);
    }

    /// Reading checkpoints of earlier versions depends on these names.
    #[test]
    fn a_checkpoint_contains_all_fields_except_divergence() {
        let mut epochs = after_two_steps();
        epochs.observe(5.0);
        epochs.end();
        epochs.step(-1.5, 1, Duration::from_millis(125));
        epochs.diverged_in_epoch = Some(2);
        let stored = json!({
            "epoch": 1, "batch": 1, "log_prob": -1.5, "n_tokens": 1, "seconds": 0.125, "n_steps": 3,
            "best_epoch": 1, "best_perplexity": 5.0, "train_perplexity": 2f64.exp(), "seconds_per_epoch": 0.75,
        });
        assert_eq!(json!(epochs), stored);
        let restored = Epochs::deserialize(&stored).unwrap();
        assert_eq!((json!(restored), restored.diverged_in_epoch), (stored, None));
    }
}
