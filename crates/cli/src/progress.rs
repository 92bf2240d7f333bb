//! Progress of training: a bar on a terminal, otherwise one line every few seconds; logs, checkpoints and Ctrl-C.

use crate::errors::hinted;
use crate::interrupts::interrupted;
use crate::output::{Output, complain, figure};
use crate::paths::write_elsewhere;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use latens::model::{Checkpoint, CheckpointPace, FitError, Progress};
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Interval between progress lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Shows and logs the progress of a trainer, saves checkpoints, and stops on Ctrl-C.
pub(crate) struct Watcher {
    bar: Option<ProgressBar>,
    quiet: bool,
    started: Instant,
    phase: &'static str,
    phase_started: Instant,
    /// Progress at the first report of the phase, which is above 0 in a resumed run.
    done_before: u64,
    last_line: Instant,
    log: Option<File>,
    /// Whether this run wrote lines to the log.
    has_logged: bool,
    /// Path of checkpoints, if the trainer supports them. Without one, Ctrl-C stops at any report.
    checkpoint: Option<PathBuf>,
    /// Schedule of checkpoints.
    pace: CheckpointPace,
    /// Whether this run wrote a checkpoint.
    has_saved: bool,
    /// The checkpoint that was written because of Ctrl-C.
    saved_at_stop: Option<SavedAt>,
    /// Whether the message about Ctrl-C was printed.
    told_of_stop: bool,
    /// Error that stopped the work, other than Ctrl-C.
    failure: Option<anyhow::Error>,
}

impl Watcher {
    /// Creates a watcher that writes one JSON line per iteration to `log` and checkpoints to `checkpoint`. An existing
    /// checkpoint is replaced early only in a resumed run.
    pub(crate) fn new(
        output: &Output,
        log: Option<File>,
        checkpoint: Option<PathBuf>,
        resumes: bool,
    ) -> Watcher {
        let on_terminal = !output.is_quiet() && std::io::stderr().is_terminal();
        let now = Instant::now();
        let old = checkpoint.as_deref().filter(|path| !resumes && path.exists());
        if let Some(old) = old {
            output.note(&format!(
                "`{}` is a checkpoint of an earlier run and will be replaced; `--resume` continues from it",
                old.display()
            ));
        }
        let pace = pace(old, now);
        Watcher {
            bar: on_terminal
                .then(|| ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())),
            quiet: output.is_quiet(),
            started: now,
            phase: "",
            phase_started: now,
            done_before: 0,
            last_line: now,
            log,
            has_logged: false,
            checkpoint,
            pace,
            has_saved: false,
            saved_at_stop: None,
            told_of_stop: false,
            failure: None,
        }
    }

    /// Writes no checkpoints, so that an interruption ends the run at once.
    pub(crate) fn forgo_checkpoints(&mut self) {
        self.checkpoint = None;
    }

    /// Handles a progress report of a trainer.
    pub(crate) fn watch(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
        self.show(progress);
        self.tell_of_stop();
        self.log_iteration(progress);
        if let Err(failure) = self.save(progress) {
            self.failure = Some(failure);
            return ControlFlow::Break(());
        }
        // With checkpoints, work continues to the next one before it stops.
        if interrupted() && (self.saved_at_stop.is_some() || self.checkpoint.is_none()) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// Whether this run wrote a checkpoint.
    pub(crate) fn has_saved(&self) -> bool {
        self.has_saved
    }

    /// Logs the final metrics, unless iterations were logged.
    pub(crate) fn log_result(&mut self, metrics: &Map<String, Value>) {
        if !self.has_logged {
            self.write_log(1, metrics.clone());
        }
    }

    /// Ends the display and turns an interruption into an error that says what was saved.
    pub(crate) fn finish<T>(&mut self, result: Result<T, FitError>) -> anyhow::Result<T> {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        match (result, &self.saved_at_stop) {
            (Err(FitError::Interrupted), Some(saved)) => {
                Err(hinted("interrupted; no model was written", saved.hint()))
            }
            (Err(FitError::Interrupted), _) => anyhow::bail!("interrupted; nothing was written"),
            (result, _) => Ok(result?),
        }
    }

    fn show(&mut self, progress: &Progress<'_>) {
        let new_phase = progress.phase != self.phase;
        if new_phase {
            self.phase = progress.phase;
            self.phase_started = Instant::now();
            self.done_before = progress.done;
        }
        match &self.bar {
            Some(bar) => {
                if new_phase {
                    bar.reset();
                    bar.set_style(style(total(progress).is_some()));
                    bar.set_message(progress.phase);
                    bar.set_length(total(progress).unwrap_or(0));
                    bar.set_position(progress.done);
                    bar.reset_eta();
                }
                // Metrics of an earlier iteration stay until there are newer ones.
                if new_phase || !progress.metrics.is_empty() {
                    bar.set_prefix(metrics_text(progress));
                }
                bar.set_position(progress.done);
            }
            None if self.quiet => {}
            None => {
                if !progress.metrics.is_empty() || self.last_line.elapsed() >= LINE_EVERY {
                    self.last_line = Instant::now();
                    complain(&format!("{}\n", self.line(progress)));
                }
            }
        }
    }

    fn line(&self, progress: &Progress<'_>) -> String {
        let mut line = format!("{}: {}", progress.phase, progress.done);
        if let Some(total) = total(progress) {
            line += &format!("/{total} {}", progress.unit);
            let elapsed = self.phase_started.elapsed().as_secs_f64();
            let done_since = progress.done.saturating_sub(self.done_before);
            if done_since > 0 && progress.done < total {
                let left = elapsed * (total - progress.done) as f64 / done_since as f64;
                line += &format!(", {left:.0} s left");
            }
        } else {
            line += &format!(" {}", progress.unit);
        }
        let metrics = metrics_text(progress);
        if metrics.is_empty() { line } else { format!("{line}, {metrics}") }
    }

    /// Prints a message, above the bar if there is one.
    fn say(&self, message: &str) {
        let line = format!("{message}\n");
        match &self.bar {
            Some(bar) => bar.suspend(|| complain(&line)),
            None if self.quiet => {}
            None => complain(&line),
        }
    }

    /// Confirms Ctrl-C, because the next checkpoint may be minutes away.
    fn tell_of_stop(&mut self) {
        if interrupted() && self.checkpoint.is_some() && !self.told_of_stop {
            self.told_of_stop = true;
            self.say("stopping at the next checkpoint; press Ctrl-C again to stop immediately");
        }
    }

    fn log_iteration(&mut self, progress: &Progress<'_>) {
        if progress.metrics.is_empty() {
            return;
        }
        let metrics = progress.metrics.iter();
        let metrics = metrics.map(|&(name, value)| (name.to_owned(), value.into())).collect();
        self.write_log(progress.iteration.unwrap_or(progress.done), metrics);
    }

    /// Writes a line of the log. If that fails, training goes on without the log: the model is worth more.
    fn write_log(&mut self, iteration: u64, metrics: Map<String, Value>) {
        let Some(log) = &mut self.log else { return };
        let mut line = Map::new();
        line.insert("iteration".into(), iteration.into());
        line.insert("seconds".into(), self.started.elapsed().as_secs_f64().into());
        line.extend(metrics);
        self.has_logged = true;
        // In one piece, so that a full disk leaves no half of a line where it can be avoided.
        if let Err(error) = log.write_all(format!("{}\n", Value::Object(line)).as_bytes()) {
            self.log = None;
            self.say(&format!(
                "warning: cannot write the log: {error}; training continues without it"
            ));
        }
    }

    fn save(&mut self, progress: &Progress<'_>) -> anyhow::Result<()> {
        let (Some(make), Some(path)) = (progress.checkpoint, &self.checkpoint) else {
            return Ok(());
        };
        let stopping = interrupted();
        if !stopping && !self.pace.is_due(progress) {
            return Ok(());
        }
        let mut made = None;
        let saved = self.pace.save(|| Ok(made.insert(make()?).save(path)?));
        match saved {
            Ok(()) => {
                self.has_saved = true;
                self.saved_at_stop = stopping.then(|| SavedAt::Place(path.clone()));
            }
            Err(error) if stopping => {
                let earlier = self.has_saved.then_some(&**path);
                let saved = save_elsewhere(made, path, error, earlier)?;
                self.saved_at_stop = Some(saved);
            }
            // Training continues: the model itself may still be written.
            Err(error) => self.say(&format!("warning: cannot write the checkpoint: {error:#}")),
        }
        Ok(())
    }
}

/// Where the checkpoint of an interrupted run is.
enum SavedAt {
    Place(PathBuf),
    /// In another folder, because its path could not be written.
    Elsewhere {
        path: PathBuf,
        place: PathBuf,
        problem: String,
    },
}

impl SavedAt {
    fn hint(&self) -> String {
        match self {
            SavedAt::Place(place) => {
                format!("continue from the checkpoint `{}` with `--resume`", place.display())
            }
            SavedAt::Elsewhere { path, place, problem } => format!(
                "{problem}; the checkpoint is in `{}`: move it to `{}` and continue with `--resume`",
                path.display(),
                place.display()
            ),
        }
    }
}

/// Saves the checkpoint of an interrupted run in the folder of temporary files, since its place cannot be written.
fn save_elsewhere(
    checkpoint: Option<Checkpoint>,
    place: &Path,
    error: anyhow::Error,
    earlier: Option<&Path>,
) -> anyhow::Result<SavedAt> {
    let Some(checkpoint) = checkpoint else { return Err(error) };
    let problem = format!("{error:#}");
    let also = match write_elsewhere(place, |path| Ok(checkpoint.save(path)?)) {
        Ok(path) => return Ok(SavedAt::Elsewhere { path, place: place.to_owned(), problem }),
        Err(error) => format!("{error:#}"),
    };
    let message =
        format!("interrupted, and the checkpoint could not be written: {problem}; {also}");
    Err(match earlier {
        Some(earlier) => hinted(
            message,
            format!("continue from the earlier checkpoint `{}` with `--resume`", earlier.display()),
        ),
        None => anyhow::anyhow!(message),
    })
}

/// Schedule of checkpoints. The first one is late if it replaces an old checkpoint, which may still be needed.
fn pace(old: Option<&Path>, began: Instant) -> CheckpointPace {
    if old.is_some() { CheckpointPace::late(began) } else { CheckpointPace::new(began) }
}

/// The total, unless it is 0: then nothing is known about it.
fn total(progress: &Progress<'_>) -> Option<u64> {
    progress.total.filter(|&total| total > 0)
}

fn style(has_total: bool) -> ProgressStyle {
    let template = if has_total {
        "{msg} {bar:30} {human_pos}/{human_len}, {eta} left {prefix}"
    } else {
        "{msg} {spinner} {human_pos} {prefix}"
    };
    ProgressStyle::with_template(template).expect("the template is valid")
}

fn metrics_text(progress: &Progress<'_>) -> String {
    let metrics = progress.metrics.iter().map(|&(name, value)| format!("{name} {}", figure(value)));
    metrics.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens::model::Params;
    use latens::ngram::NgramParams;

    fn quiet_watcher(log: Option<File>, checkpoint: Option<PathBuf>) -> Watcher {
        let mut watcher = Watcher::new(&Output::new(false, true), log, checkpoint, false);
        watcher.pace = CheckpointPace::new(Instant::now() - Duration::from_secs(3600));
        watcher
    }

    fn checkpoint() -> Checkpoint {
        Checkpoint::new("ngram", &NgramParams::default().validate().unwrap(), 1, &1)
    }

    #[test]
    fn a_checkpoint_that_cannot_be_made_does_not_stop_the_work() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("checkpoint");
        let make = || Err(FitError::step("read the device")(std::io::Error::other("it is gone")));
        let progress = Progress { checkpoint: Some(&make), ..Progress::default() };
        let mut watcher = quiet_watcher(None, Some(path.clone()));
        assert!(watcher.watch(&progress).is_continue());
        assert!(!watcher.has_saved() && !path.exists());
    }

    #[test]
    fn a_periodic_checkpoint_that_fails_does_not_stop_the_work() {
        let folder = tempfile::tempdir().unwrap();
        let progress = Progress { checkpoint: Some(&|| Ok(checkpoint())), ..Progress::default() };
        let mut failing = quiet_watcher(None, Some(folder.path().join("absent/checkpoint")));
        assert!(failing.watch(&progress).is_continue());
        assert!(!failing.has_saved());
        let mut saving = quiet_watcher(None, Some(folder.path().join("checkpoint")));
        assert!(saving.watch(&progress).is_continue());
        assert!(saving.has_saved());
    }

    #[test]
    fn a_checkpoint_of_an_earlier_run_is_not_replaced_at_once() {
        let metrics = [("loss", 1.0)];
        let progress = Progress { metrics: &metrics, ..Progress::default() };
        let began = Instant::now() - Duration::from_secs(60);
        assert!(!pace(Some(Path::new("old")), began).is_due(&progress));
        assert!(pace(None, began).is_due(&progress));
    }

    #[test]
    fn the_time_left_counts_what_this_run_has_done() {
        let mut watcher = quiet_watcher(None, None);
        let at = |done| Progress { phase: "learn", done, total: Some(100), ..Progress::default() };
        assert!(watcher.watch(&at(90)).is_continue());
        watcher.phase_started -= Duration::from_secs(10);
        // Five in ten seconds, so another five take as long.
        assert!(watcher.line(&at(95)).contains(", 10 s left"), "{}", watcher.line(&at(95)));
        assert!(!watcher.line(&at(90)).contains("left"));
    }

    #[test]
    fn a_total_of_zero_is_not_shown() {
        let watcher = quiet_watcher(None, None);
        let progress =
            Progress { phase: "learn", total: Some(0), unit: "epochs", ..Progress::default() };
        assert_eq!(watcher.line(&progress), "learn: 0 epochs");
    }

    #[test]
    fn seconds_in_the_log_count_from_the_start_of_the_work() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut watcher = quiet_watcher(Some(File::create(&path).unwrap()), None);
        for phase in ["count", "learn"] {
            std::thread::sleep(Duration::from_millis(2));
            let metrics = [("loss", 1.0)];
            let progress = Progress { phase, done: 1, metrics: &metrics, ..Progress::default() };
            assert!(watcher.watch(&progress).is_continue());
        }
        watcher.log_result(&Map::new());
        let log = std::fs::read_to_string(path).unwrap();
        let seconds = log
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["seconds"].as_f64().unwrap());
        let seconds: Vec<f64> = seconds.collect();
        assert!(seconds.len() == 2 && seconds[1] > seconds[0] + 0.001, "{seconds:?}");
    }
}
