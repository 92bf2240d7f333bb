//! Progress callbacks, through which callers observe and stop training.

use crate::fit::checkpoint::Checkpoint;
use crate::fit::error::FitError;
use std::ops::ControlFlow;

/// A progress report of a trainer.
///
/// A long iteration may report its inner steps as a separate phase.
#[derive(Clone, Copy, Default)]
pub struct Progress<'a> {
    /// Name of the current phase: `count n-grams`, `learn`.
    pub phase: &'static str,
    /// Completed units of this phase.
    pub done: u64,
    /// Total units of this phase, if known.
    pub total: Option<u64>,
    /// The unit of `done` and `total`: `iterations`, `sentences`.
    pub unit: &'static str,
    /// Metrics since the last report, most important first. Usually empty except at the end of an
    /// iteration.
    pub metrics: &'a [(&'static str, f64)],
    /// One-based iteration of the metrics, if `done` counts a smaller unit.
    pub iteration: Option<u64>,
    /// Creates a checkpoint of the current state. Present only when training can resume from here
    /// with identical results. Costs nothing unless called.
    pub checkpoint: Option<&'a MakeCheckpoint<'a>>,
}

/// Creates a checkpoint. Fails if the state cannot be read from the device.
pub type MakeCheckpoint<'a> = dyn Fn() -> Result<Checkpoint, FitError> + 'a;

/// A progress callback, which decides whether training continues.
///
/// To stop without losing work, wait for a report with a checkpoint, save it, and return
/// [`ControlFlow::Break`]. To save checkpoints regularly, return [`ControlFlow::Continue`] instead;
/// see [`crate::CheckpointPace`]. A break at any other report stops at once and discards the work
/// since the last checkpoint.
pub type Watch<'w> = dyn FnMut(&Progress<'_>) -> ControlFlow<()> + 'w;

impl Progress<'_> {
    /// Calls the callback. Returns [`FitError::Interrupted`] if it stops the training.
    pub fn report(&self, watch: &mut Watch) -> Result<(), FitError> {
        match watch(self) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(FitError::Interrupted),
        }
    }
}

/// A callback that ignores all reports, for tests and examples.
pub fn unwatched(_: &Progress<'_>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count_to_ten(watch: &mut Watch) -> Result<u64, FitError> {
        for done in 1..=10 {
            Progress { phase: "count", done, total: Some(10), ..Progress::default() }
                .report(watch)?;
        }
        Ok(10)
    }

    #[test]
    fn the_callback_receives_every_report_until_it_breaks() {
        let mut seen = Vec::new();
        let result = count_to_ten(&mut |progress| {
            seen.push(progress.done);
            if progress.done == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(matches!(result, Err(FitError::Interrupted)));
        assert_eq!(seen, [1, 2, 3]);
    }

    #[test]
    fn the_default_callback_never_stops() {
        assert_eq!(count_to_ten(&mut unwatched).unwrap(), 10);
    }
}
