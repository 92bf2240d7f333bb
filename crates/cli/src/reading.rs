//! Progress of reading text: a bar on a terminal, otherwise one line every few seconds.

use crate::output::{Output, complain};
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use latens::corpus::{Inputs, ReadWatch};
use std::fs;
use std::io::{self, IsTerminal};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Interval between progress lines.
const EVERY: Duration = Duration::from_secs(5);

/// Adds a progress display to inputs.
pub(crate) fn watched(mut inputs: Inputs, output: &Output) -> Inputs {
    if !output.is_quiet() {
        let total = total_bytes(&inputs);
        inputs.watch = Some(if io::stderr().is_terminal() { bar(total) } else { lines(total) });
    }
    inputs
}

/// Total size of the inputs, if known: not for compressed files or standard input.
pub(crate) fn total_bytes(inputs: &Inputs) -> Option<u64> {
    let length = |path: &std::path::PathBuf| {
        let is = |name| path.extension().is_some_and(|found| found.eq_ignore_ascii_case(name));
        let compressed = is("gz") || is("zst");
        let found = fs::metadata(path).ok().filter(|found| found.is_file() && !compressed)?;
        Some(found.len())
    };
    // An empty file has no bar; reading it is an error.
    inputs.paths.iter().map(length).sum::<Option<u64>>().filter(|&total| total > 0)
}

fn bar(total: Option<u64>) -> ReadWatch {
    let template = match total {
        Some(_) => "read text {bar:30} {bytes}/{total_bytes}, {eta} left",
        None => "read text {spinner} {bytes}",
    };
    let style = ProgressStyle::with_template(template).expect("the template is valid");
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
        let mut last = last.lock().expect("the lock is never poisoned");
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
