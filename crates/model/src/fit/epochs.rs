//! How far a training in epochs of mini-batches has come.

use crate::fit::error::FitError;
use crate::fit::progress::Progress;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// How far a training in epochs of mini-batches has come, and which epoch was the best.
///
/// It is a part of what a checkpoint stores; a trainer adds its schedule and whatever else it needs, and holds the
/// weights.
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
    /// Epochs that are over.
    pub epoch: usize,
    /// Mini-batches of this epoch that are over.
    pub batch: usize,
    /// Σ ln p, and the tokens it is over, of this epoch.
    log_prob: f64,
    n_tokens: u64,
    /// What the steps of this epoch took.
    pub seconds: f64,
    /// Steps of all epochs.
    pub n_steps: u64,
    /// The epoch, counted from 1, that was the best on held-out text.
    pub best_epoch: Option<usize>,
    best_perplexity: Option<f64>,
    /// Of the epoch whose weights are kept: the best one, or the last one where no text was held out.
    train_perplexity: Option<f64>,
    seconds_per_epoch: Option<f64>,
    /// The epoch, counted from 1, in which the loss was lost. No checkpoint has it: training goes on from one.
    #[serde(skip)]
    pub diverged_in_epoch: Option<usize>,
}

impl Epochs {
    /// Whether there are epochs left, and the loss was not lost.
    pub fn goes_on(&self, n_epochs: usize) -> bool {
        self.epoch < n_epochs && self.diverged_in_epoch.is_none()
    }

    /// A mini-batch is over: ln p of its tokens, and what it took.
    pub fn step(&mut self, log_prob: f64, n_tokens: usize, took: Duration) {
        self.batch += 1;
        self.n_steps += 1;
        self.log_prob += log_prob;
        self.n_tokens += n_tokens as u64;
        self.seconds += took.as_secs_f64();
    }

    /// Adds Σ ln p of the epoch's tokens, where steps do not tell it, and the time that it took to find out.
    pub fn add(&mut self, log_prob: f64, took: Duration) {
        self.log_prob += log_prob;
        self.seconds += took.as_secs_f64();
    }

    /// −ln p of a token, on average over this epoch so far.
    pub fn loss(&self) -> f64 {
        -self.log_prob / self.n_tokens.max(1) as f64
    }

    /// Whether this perplexity on held-out text, after the steps of this epoch, is the best so far. If it is, it is
    /// remembered, and the trainer should keep its weights.
    pub fn observe(&mut self, perplexity: f64) -> bool {
        let is_better = self.best_perplexity.is_none_or(|best| perplexity < best);
        let is_best = is_better && perplexity.is_finite();
        if is_best {
            self.best_perplexity = Some(perplexity);
            self.best_epoch = Some(self.epoch + 1);
        }
        is_best
    }

    /// This epoch is over, and the next one begins.
    pub fn end(&mut self) {
        if self.best_epoch.is_none_or(|best| best == self.epoch + 1) {
            self.train_perplexity = Some(self.loss().exp()).filter(|value| value.is_finite());
        }
        self.seconds_per_epoch = Some(self.seconds);
        self.epoch += 1;
        (self.batch, self.log_prob, self.n_tokens, self.seconds) = (0, 0.0, 0, 0.0);
    }

    /// A report of this moment, to which the trainer adds what it measured and a way to make a checkpoint.
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

    /// The best weights; if there are none, the last ones, unless those are lost.
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

    /// The state after some completed epochs, as another kind of checkpoint stored it.
    pub fn after(
        epoch: usize,
        seconds_per_epoch: Option<f64>,
        train_perplexity: Option<f64>,
    ) -> Epochs {
        Epochs { epoch, seconds_per_epoch, train_perplexity, ..Epochs::default() }
    }

    /// Restores the best epoch, counted from 1, and its perplexity on the validation text.
    pub fn set_best(&mut self, epoch: usize, perplexity: f64) {
        (self.best_epoch, self.best_perplexity) = (Some(epoch), Some(perplexity));
    }

    /// The lowest perplexity on the validation text so far.
    pub fn best_perplexity(&self) -> Option<f64> {
        self.best_perplexity
    }

    /// The training perplexity of the epoch whose weights are kept.
    pub fn train_perplexity(&self) -> Option<f64> {
        self.train_perplexity
    }

    /// The duration of the last completed epoch in seconds.
    pub fn seconds_per_epoch(&self) -> Option<f64> {
        self.seconds_per_epoch
    }

    /// What a model file tells of its training.
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
    fn an_epoch_begins_with_nothing_of_the_one_before() {
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
    fn training_goes_on_until_its_epochs_are_over_or_the_loss_is_lost() {
        let mut epochs = after_two_steps();
        assert!(epochs.goes_on(1));
        epochs.end();
        assert!(!epochs.goes_on(1) && epochs.goes_on(2));
        epochs.diverged_in_epoch = Some(2);
        assert!(!epochs.goes_on(2));
    }

    #[test]
    fn only_a_number_below_all_before_is_the_best() {
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
    fn without_held_out_text_the_last_epoch_counts_unless_it_is_lost() {
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
    fn a_report_counts_the_mini_batches_of_all_epochs() {
        let mut epochs = after_two_steps();
        epochs.end();
        epochs.step(-1.0, 1, Duration::ZERO);
        let progress = epochs.progress(3, 2);
        assert_eq!((progress.done, progress.total, progress.iteration), (3, Some(6), Some(1)));
    }

    #[test]
    fn the_last_weights_are_taken_only_if_none_are_better_and_they_are_not_lost() {
        let mut epochs = Epochs::default();
        assert_eq!(epochs.best_or_last(Some("best"), || Ok("last")).unwrap(), "best");
        assert_eq!(epochs.best_or_last(None, || Ok("last")).unwrap(), "last");
        epochs.diverged_in_epoch = Some(4);
        assert_eq!(epochs.best_or_last(Some("best"), || Ok("last")).unwrap(), "best");
        let error = epochs.best_or_last(None, || Ok("last")).unwrap_err();
        assert!(matches!(error, FitError::Diverged { epoch: 4, .. }), "{error}");
        assert_eq!(epochs.facts()["diverged_in_epoch"], 4);
    }

    /// Checkpoints of earlier versions can be read as long as these names stay.
    #[test]
    fn a_checkpoint_has_every_part_but_that_the_loss_was_lost() {
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
