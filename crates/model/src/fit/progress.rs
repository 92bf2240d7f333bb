//! How a trainer tells what it is doing, without printing, and how it is asked to stop.

use crate::fit::checkpoint::Checkpoint;
use crate::fit::error::FitError;
use std::ops::ControlFlow;

/// What a trainer has done so far; it calls its watcher with one of these every so often.
///
/// A long iteration may report its inner steps under a phase name of their own.
#[derive(Clone, Copy, Default)]
pub struct Progress<'a> {
    /// What is being done: `count n-grams`, `learn`.
    pub phase: &'static str,
    /// How much of this phase is done.
    pub done: u64,
    /// How much there is to do, if that is known.
    pub total: Option<u64>,
    /// What `done` and `total` count: `iterations`, `sentences`.
    pub unit: &'static str,
    /// What was measured since the last report, in the order of interest: usually at the end of an
    /// iteration, else nothing.
    pub metrics: &'a [(&'static str, f64)],
    /// Which iteration the metrics are of, counted from 1, where `done` counts something smaller.
    pub iteration: Option<u64>,
    /// Makes a checkpoint of this moment. It is here only at moments from which training can go on
    /// exactly as if it had never stopped, and costs nothing unless it is called.
    pub checkpoint: Option<&'a MakeCheckpoint<'a>>,
}

/// Makes a checkpoint, unless what it is made of cannot be read: a device may have stopped answering.
pub type MakeCheckpoint<'a> = dyn Fn() -> Result<Checkpoint, FitError> + 'a;

/// Who looks on while a model is fitted: draws a bar, writes a log, saves checkpoints, and says
/// whether to go on.
///
/// To stop without loss, wait for a report that offers a checkpoint, save it, and return
/// [`ControlFlow::Break`]; saving one every so often (see [`crate::CheckpointPace`]) works the same
/// way, with [`ControlFlow::Continue`]. A break at any other report stops at once, and the work is lost.
pub type Watch<'w> = dyn FnMut(&Progress<'_>) -> ControlFlow<()> + 'w;

impl Progress<'_> {
    /// Shows this to the watcher; an error if it wants to stop, for `?`.
    pub fn report(&self, watch: &mut Watch) -> Result<(), FitError> {
        match watch(self) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(FitError::Interrupted),
        }
    }
}

/// A watcher that sees nothing and never stops, for tests and examples.
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
    fn a_watcher_sees_every_report_until_it_breaks() {
        let mut seen = Vec::new();
        let result = count_to_ten(&mut |progress| {
            seen.push(progress.done);
            if progress.done == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(matches!(result, Err(FitError::Interrupted)));
        assert_eq!(seen, [1, 2, 3]);
    }

    #[test]
    fn nobody_need_watch() {
        assert_eq!(count_to_ten(&mut unwatched).unwrap(), 10);
    }
}
