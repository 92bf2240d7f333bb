//! Progress of long work: a bar on a terminal, else a line every few seconds; a log; Ctrl-C.

use crate::errors::hinted;
use crate::output::Output;
use anyhow::Context;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use latens::model::{FitError, Progress};
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Set by Ctrl-C (or a polite kill), looked at whenever a trainer reports.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// How often a line is written where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// How often work that offers checkpoints is saved, so that little is lost when the power fails.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(600);

/// Lets Ctrl-C stop long work at the next report; a second Ctrl-C ends the program at once.
pub(crate) fn catch_interrupts() -> anyhow::Result<()> {
    ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::SeqCst) {
            std::process::exit(2);
        }
    })
    .context("cannot watch for Ctrl-C")
}

/// Whether Ctrl-C was pressed.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// Shows and logs what a trainer reports, and stops it on Ctrl-C.
pub(crate) struct Watcher {
    bar: Option<ProgressBar>,
    quiet: bool,
    phase: &'static str,
    started: Instant,
    last_line: Instant,
    log: Option<File>,
    checkpoint: PathBuf,
    last_checkpoint: Instant,
    /// Why the watcher stopped the work, if not for Ctrl-C.
    failure: Option<anyhow::Error>,
    /// Whether this work offers checkpoints at all; else it is stopped at any report.
    offers_checkpoints: bool,
    /// Whether a checkpoint was saved because of Ctrl-C.
    saved_at_stop: bool,
}

impl Watcher {
    /// A watcher that logs a JSON line an iteration to `log`, and saves checkpoints at `checkpoint`, if
    /// the work offers any.
    pub(crate) fn new(
        output: &Output,
        log: Option<&Path>,
        checkpoint: Option<PathBuf>,
    ) -> anyhow::Result<Watcher> {
        let log = log.map(|path| {
            File::options()
                .create(true)
                .append(true)
                .open(path)
                .with_context(|| format!("cannot write `{}`", path.display()))
        });
        let on_terminal = !output.is_quiet() && std::io::stderr().is_terminal();
        Ok(Watcher {
            bar: on_terminal
                .then(|| ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())),
            quiet: output.is_quiet(),
            phase: "",
            started: Instant::now(),
            last_line: Instant::now(),
            log: log.transpose()?,
            offers_checkpoints: checkpoint.is_some(),
            checkpoint: checkpoint.unwrap_or_default(),
            last_checkpoint: Instant::now(),
            failure: None,
            saved_at_stop: false,
        })
    }

    /// What a trainer calls.
    pub(crate) fn watch(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
        self.show(progress);
        if let Err(failure) = self.write_log(progress).and_then(|()| self.save(progress)) {
            self.failure = Some(failure);
            return ControlFlow::Break(());
        }
        // Where there are checkpoints, the work goes on to the next one before it stops.
        if interrupted() && (self.saved_at_stop || !self.offers_checkpoints) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// The work is over; turns an interruption into an error that says what was kept.
    pub(crate) fn finish<T>(mut self, result: Result<T, FitError>) -> anyhow::Result<T> {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        match result {
            Err(FitError::Interrupted) if self.saved_at_stop => Err(hinted(
                "interrupted; no model was written",
                format!("`{}` is a checkpoint: go on with `--resume`", self.checkpoint.display()),
            )),
            Err(FitError::Interrupted) => anyhow::bail!("interrupted; nothing was written"),
            result => Ok(result?),
        }
    }

    fn show(&mut self, progress: &Progress<'_>) {
        let new_phase = progress.phase != self.phase;
        if new_phase {
            self.phase = progress.phase;
            self.started = Instant::now();
        }
        match &self.bar {
            Some(bar) => {
                if new_phase {
                    bar.reset();
                    bar.set_style(style(progress.total.is_some()));
                    bar.set_message(progress.phase);
                    bar.set_length(progress.total.unwrap_or(0));
                }
                bar.set_prefix(metrics_text(progress));
                bar.set_position(progress.done);
            }
            None if self.quiet => {}
            None => {
                if !progress.metrics.is_empty() || self.last_line.elapsed() >= LINE_EVERY {
                    self.last_line = Instant::now();
                    eprintln!("{}", self.line(progress));
                }
            }
        }
    }

    fn line(&self, progress: &Progress<'_>) -> String {
        let mut line = format!("{}: {}", progress.phase, progress.done);
        if let Some(total) = progress.total {
            line += &format!("/{total} {}", progress.unit);
            let elapsed = self.started.elapsed().as_secs_f64();
            if progress.done > 0 && progress.done < total {
                let left = elapsed * (total - progress.done) as f64 / progress.done as f64;
                line += &format!(", {left:.0} s left");
            }
        } else {
            line += &format!(" {}", progress.unit);
        }
        let metrics = metrics_text(progress);
        if metrics.is_empty() { line } else { format!("{line}, {metrics}") }
    }

    fn write_log(&mut self, progress: &Progress<'_>) -> anyhow::Result<()> {
        let Some(log) = &mut self.log else { return Ok(()) };
        if progress.metrics.is_empty() {
            return Ok(());
        }
        let mut line = Map::new();
        line.insert("iteration".into(), progress.done.into());
        line.insert("seconds".into(), self.started.elapsed().as_secs_f64().into());
        for &(name, value) in progress.metrics {
            line.insert(name.into(), value.into());
        }
        writeln!(log, "{}", Value::Object(line)).context("cannot write the log")
    }

    fn save(&mut self, progress: &Progress<'_>) -> anyhow::Result<()> {
        let Some(make) = progress.checkpoint else { return Ok(()) };
        if interrupted() || self.last_checkpoint.elapsed() >= CHECKPOINT_EVERY {
            make().save(&self.checkpoint)?;
            self.saved_at_stop = interrupted();
            self.last_checkpoint = Instant::now();
        }
        Ok(())
    }
}

fn style(has_total: bool) -> ProgressStyle {
    let template = if has_total {
        "{msg} {bar:30} {human_pos}/{human_len}, {eta} left {prefix}"
    } else {
        "{msg} {spinner} {human_pos} {prefix}"
    };
    ProgressStyle::with_template(template).expect("the template is right")
}

fn metrics_text(progress: &Progress<'_>) -> String {
    let metrics = progress.metrics.iter().map(|(name, value)| format!("{name} {value:.4}"));
    metrics.collect::<Vec<_>>().join(", ")
}
