//! Work outside the GIL that Ctrl-C can stop.

use crate::errors::fit_error;
use latens::model::{CheckpointPace, FitError, Progress};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::any::Any;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Interval at which signals are checked.
const TICK: Duration = Duration::from_millis(50);

/// What the caller of a function wants to hear and when it should stop.
#[derive(Default)]
pub(crate) struct Wishes {
    /// Number of threads; `None` for all cores.
    pub(crate) n_threads: Option<usize>,
    /// Python function that receives progress.
    pub(crate) callback: Option<Py<PyAny>>,
    /// Path of checkpoints.
    pub(crate) checkpoint: Option<PathBuf>,
}

/// What running work sees of its caller.
pub(crate) struct Caller<'a> {
    stop: &'a AtomicBool,
    reports: Option<Sender<Report>>,
    checkpoint: Option<PathBuf>,
    last_report: Instant,
    pace: CheckpointPace,
}

/// A progress report that has left the trainer.
struct Report {
    phase: &'static str,
    done: u64,
    total: Option<u64>,
    unit: &'static str,
    iteration: Option<u64>,
    metrics: Vec<(&'static str, f64)>,
}

impl Caller<'_> {
    /// Fails if the work should stop. Long loops call this.
    pub(crate) fn check(&self) -> PyResult<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(PyKeyboardInterrupt::new_err(()));
        }
        Ok(())
    }

    /// The callback of a trainer.
    pub(crate) fn watch(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
        self.report(progress);
        let stops = self.stop.load(Ordering::Relaxed);
        let (Some(path), Some(make)) = (&self.checkpoint, progress.checkpoint) else {
            // With a path, the next report that has a checkpoint stops the work.
            return if stops && self.checkpoint.is_none() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            };
        };
        if stops || self.pace.is_due(progress) {
            // A checkpoint that cannot be written must not cost the model.
            let _ = self.pace.save(|| match make() {
                Ok(checkpoint) => checkpoint.save(path).map_err(drop),
                Err(_) => Err(()),
            });
        }
        if stops { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn report(&mut self, progress: &Progress<'_>) {
        let Some(reports) = &self.reports else { return };
        let is_last = progress.total == Some(progress.done);
        if progress.metrics.is_empty() && !is_last && self.last_report.elapsed() < TICK {
            return;
        }
        self.last_report = Instant::now();
        let &Progress { phase, done, total, unit, iteration, metrics, .. } = progress;
        // The receiver is gone only if the caller failed, and then `stop` is set.
        let _ =
            reports.send(Report { phase, done, total, unit, iteration, metrics: metrics.into() });
    }
}

/// Runs work in a thread pool of its own while this thread watches for signals and calls the callback.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    wishes: Wishes,
    work: impl FnOnce(&mut Caller<'_>) -> PyResult<T> + Send,
) -> PyResult<T> {
    let Wishes { n_threads, callback, checkpoint } = wishes;
    let n_threads = n_threads.unwrap_or(0);
    if n_threads > 1024 {
        let message = format!("`n_jobs` must be at most 1024, got {n_threads}");
        return Err(PyValueError::new_err(message));
    }
    let (sender, receiver) = channel();
    let stop = AtomicBool::new(false);
    let has_callback = callback.is_some();
    py.detach(move || {
        thread::scope(|scope| {
            let stop = &stop;
            let worker = scope.spawn(move || {
                // Kept until the work ends, so that the caller notices the end.
                let ends = sender.clone();
                let reports = has_callback.then_some(sender);
                let last_report = Instant::now();
                let pace = CheckpointPace::new(last_report);
                let mut caller = Caller { stop, reports, checkpoint, last_report, pace };
                // Scoped, so that the threads have ended when the call returns.
                let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads);
                let result = catch_unwind(AssertUnwindSafe(|| {
                    let run = |thread: rayon::ThreadBuilder| thread.run();
                    pool.build_scoped(run, |pool| pool.install(|| work(&mut caller)))
                        .unwrap_or_else(|error| Err(PyRuntimeError::new_err(error.to_string())))
                }));
                drop(ends);
                result.unwrap_or_else(|panic| Err(internal_error(&*panic)))
            });
            let stopped_by = attend(&receiver, callback.as_ref(), stop);
            let result = worker.join().unwrap_or_else(|panic| Err(internal_error(&*panic)));
            match stopped_by {
                Some(error) => Err(error),
                None => result,
            }
        })
    })
}

/// Runs work that reports no progress on all cores, in a thread pool of its own: threads of a pool for the whole process would
/// be missing in forked processes.
pub(crate) fn on_all_cores<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    run(py, Wishes::default(), |_| Ok(work()))
}

/// Calls the callback and checks signals until the work ends. Returns the exception that stopped it.
fn attend(
    reports: &Receiver<Report>,
    callback: Option<&Py<PyAny>>,
    stop: &AtomicBool,
) -> Option<PyErr> {
    let mut stopped_by = None;
    let mut checked = Instant::now();
    loop {
        let outcome = match reports.recv_timeout(TICK) {
            Ok(report) => match callback {
                Some(callback) if stopped_by.is_none() => {
                    Python::attach(|py| report.give(py, callback))
                }
                _ => Ok(()),
            },
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => return stopped_by,
        };
        let outcome = outcome.and_then(|()| {
            if checked.elapsed() < TICK / 2 {
                return Ok(());
            }
            checked = Instant::now();
            Python::attach(|py| py.check_signals())
        });
        if let Err(error) = outcome {
            stop.store(true, Ordering::Relaxed);
            stopped_by.get_or_insert(error);
        }
    }
}

impl Report {
    fn give(&self, py: Python<'_>, callback: &Py<PyAny>) -> PyResult<()> {
        let facts = PyDict::new(py);
        facts.set_item("phase", self.phase)?;
        facts.set_item("done", self.done)?;
        facts.set_item("total", self.total)?;
        facts.set_item("unit", self.unit)?;
        facts.set_item("iteration", self.iteration)?;
        let metrics = PyDict::new(py);
        self.metrics.iter().try_for_each(|(name, value)| metrics.set_item(name, value))?;
        facts.set_item("metrics", metrics)?;
        callback.call1(py, (facts,)).map(drop)
    }
}

/// An exception for an error of training. Interrupted work was stopped by the caller, which knows why.
pub(crate) fn training_error(error: &FitError) -> PyErr {
    match error {
        FitError::Interrupted => PyKeyboardInterrupt::new_err(()),
        error => fit_error(error),
    }
}

fn internal_error(panic: &(dyn Any + Send)) -> PyErr {
    let what = panic.downcast_ref::<String>().map(String::as_str);
    let what = what.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown cause");
    PyRuntimeError::new_err(format!("internal error of latens (please report it): {what}"))
}
