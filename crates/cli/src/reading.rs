//! Progress of reading text: a bar on a terminal, else a line every few seconds.

use crate::output::{Output, complain};
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use latens::corpus::{Inputs, ReadWatch};
use std::fs;
use std::io::{self, IsTerminal};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How long reading may take before anything is shown, and how often a line is written.
const EVERY: Duration = Duration::from_secs(5);

/// The same inputs, with a watcher that shows how far reading has come.
pub(crate) fn watched(mut inputs: Inputs, output: &Output) -> Inputs {
    if !output.is_quiet() {
        let total = total_bytes(&inputs);
        inputs.watch = Some(if io::stderr().is_terminal() { bar(total) } else { lines(total) });
    }
    inputs
}

/// How much there is to read, if that is known: not of compressed files, nor of the standard input.
fn total_bytes(inputs: &Inputs) -> Option<u64> {
    let length = |path: &std::path::PathBuf| {
        let compressed = path.extension().is_some_and(|e| e == "gz" || e == "zst");
        let found = fs::metadata(path).ok().filter(|found| found.is_file() && !compressed)?;
        Some(found.len())
    };
    inputs.paths.iter().map(length).sum()
}

fn bar(total: Option<u64>) -> ReadWatch {
    let template = match total {
        Some(_) => "read text {bar:30} {bytes}/{total_bytes}, {eta} left",
        None => "read text {spinner} {bytes}",
    };
    let style = ProgressStyle::with_template(template).expect("the template is right");
    let bar = ProgressBar::new(total.unwrap_or(0)).with_style(style);
    ReadWatch::new(move |n_bytes| {
        bar.set_position(n_bytes);
        if total.is_some_and(|total| n_bytes >= total) {
            bar.finish_and_clear();
        }
    })
}

fn lines(total: Option<u64>) -> ReadWatch {
    let started = Instant::now();
    let last = Mutex::new(started);
    ReadWatch::new(move |n_bytes| {
        let mut last = last.lock().expect("nobody panics with it");
        if last.elapsed() < EVERY {
            return;
        }
        *last = Instant::now();
        let mut line = format!("read text: {}", HumanBytes(n_bytes));
        if let Some(total) = total.filter(|&total| total > n_bytes) {
            let left = started.elapsed().as_secs_f64() * (total - n_bytes) as f64 / n_bytes as f64;
            line += &format!(" of {}, {left:.0} s left", HumanBytes(total));
        }
        complain(&(line + "\n"));
    })
}
