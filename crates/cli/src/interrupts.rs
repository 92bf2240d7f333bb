//! Ctrl-C, SIGTERM and SIGHUP: they stop the program at once, or training at its next checkpoint.

use anyhow::{Context, Result};
use latens::store::OutputLock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set by a signal, checked whenever a trainer reports progress.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Whether the work checks `INTERRUPTED`.
static CAUGHT: AtomicBool = AtomicBool::new(false);

/// The locks of this run, which must not outlive it.
static LOCKS: Mutex<Vec<OutputLock>> = Mutex::new(Vec::new());

/// From now on, the first signal stops work at its next report, and the second one exits.
pub(crate) fn catch_interrupts() {
    CAUGHT.store(true, Ordering::SeqCst);
}

/// Whether a signal has asked the work to stop.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// Acquires locks and keeps them until [`release_locks`] or a signal, which waits until they are kept.
pub(crate) fn keep_locks(acquire: impl FnOnce() -> Result<Vec<OutputLock>>) -> Result<()> {
    let mut kept = locks();
    kept.extend(acquire()?);
    Ok(())
}

/// Removes the lock files of this run.
pub(crate) fn release_locks() {
    locks().clear();
}

fn locks() -> std::sync::MutexGuard<'static, Vec<OutputLock>> {
    LOCKS.lock().expect("no thread panics while it holds this lock")
}

/// What a signal asks for.
#[derive(PartialEq)]
enum Request {
    /// The work stops by itself.
    Stop,
    /// The process ends now, for the second signal.
    Exit,
    /// The process ends now, as without a signal handler.
    Die,
}

fn request() -> Request {
    let (is_second, caught) =
        (INTERRUPTED.swap(true, Ordering::SeqCst), CAUGHT.load(Ordering::SeqCst));
    let request = match (caught, is_second) {
        (false, _) => Request::Die,
        (true, false) => return Request::Stop,
        (true, true) => Request::Exit,
    };
    let mut kept = locks();
    kept.clear();
    // The process ends, and acquires no more locks until then.
    std::mem::forget(kept);
    request
}

/// Starts to listen for signals. Call this before other threads are started: they inherit that signals go to the
/// listener. Signals that are ignored, e.g., under `nohup`, stay ignored.
#[cfg(unix)]
pub(crate) fn listen() -> Result<()> {
    use nix::sys::signal::{SigSet, Signal, raise};
    let ignored = ignored_signals();
    let all = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
    let signals: SigSet =
        all.into_iter().filter(|&signal| ignored & (1 << (signal as u32 - 1)) == 0).collect();
    let listening = "cannot listen for signals";
    signals.thread_block().context(listening)?;
    let wait = move || {
        while let Ok(signal) = signals.wait() {
            match request() {
                Request::Stop => continue,
                Request::Exit => {}
                Request::Die => {
                    // Shells see which signal ended the program.
                    let _ = SigSet::from(signal).thread_unblock();
                    let _ = raise(signal);
                }
            }
            std::process::exit(2);
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(wait).context(listening)?;
    Ok(())
}

/// The ignored signals: bit `n - 1` for signal `n`. Only Linux delivers them to a listener; elsewhere none are reported.
#[cfg(unix)]
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Starts to listen for Ctrl-C.
#[cfg(not(unix))]
pub(crate) fn listen() -> Result<()> {
    ctrlc::set_handler(|| {
        if request() != Request::Stop {
            std::process::exit(2);
        }
    })
    .context("cannot listen for Ctrl-C")
}
