//! Sizes with the real program: absurd ones are refused with one message, and `--dry-run` tells the memory.
//!
//! The address space of every child is limited, so that a wrong estimate cannot take the machine down.
#![cfg(target_os = "linux")]

mod common;

use common::{Folder, Ran};
use latens::corpus::embedded::{self, Split};
use std::process::Command;

/// Limit of the address space in KiB: 4 GiB.
const LIMIT_KIB: usize = 4 << 20;

/// Runs `latens` with a limited address space.
fn run(folder: &Folder, args: &str) -> Ran {
    let script = format!("ulimit -v {LIMIT_KIB} && exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.current_dir(folder.path()).args(["-c", &script, env!("CARGO_BIN_EXE_latens")]);
    command.args(args.split_whitespace()).args(["-o", "model", "--threads", "2"]);
    Ran::new(command.output().unwrap())
}

/// The embedded corpus as text, tagged text, and vectors of a few words.
fn folder() -> Folder {
    let folder = Folder::with_embedded_corpus();
    folder.write("train.conll", embedded::tagged(Split::Train));
    folder.write("vectors.txt", "water 0.1 0.2\nmoney 0.3 0.1\ncourt 0.2 0.4\ntrain 0.5 0.5\n");
    folder
}

/// The message of a refusal that names a parameter, an option or the memory.
#[track_caller]
fn assert_refused(folder: &Folder, args: &str) -> String {
    let ran = run(folder, args);
    assert_eq!(ran.code, Some(2), "{args}: {}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.stderr.matches("error: ").count(), 1, "{args}: {}", ran.stderr);
    assert!(!ran.stderr.contains("panicked"), "{args}: {}", ran.stderr);
    assert!(ran.stdout.is_empty(), "{args}: {}", ran.stdout);
    assert!(!folder.path().join("model").exists(), "{args}");
    ran.stderr
}

const ABSURD: [u64; 4] = [1 << 31, 1 << 40, 1 << 62, u64::MAX];

/// Commands, and their parameters that are sizes or numbers of passes.
const SIZES: &[(&str, &[&str])] = &[
    ("train ngram train.txt", &["order"]),
    ("train brown train.txt", &["n-clusters"]),
    ("train word2vec train.txt", &["dim", "window", "n-negatives", "epochs"]),
    ("train lds train.txt", &["dim", "lags", "ssid-lags", "n-iterations", "power-iterations"]),
    (
        "train hmm train.txt",
        &["n-states", "n-clusters", "dim", "run-tokens", "batch-tokens", "epochs"],
    ),
    (
        "train fhmm train.txt",
        &["n-layers", "n-states", "lbfgs-iterations", "sweeps", "restarts", "epochs"],
    ),
    ("train ff train.txt", &["order", "n-layers", "dim", "batch-size", "epochs"]),
    ("train rnn train.txt", &["dim", "batch-size", "bptt", "epochs"]),
    ("train lstm train.txt", &["n-layers", "dim", "batch-size", "bptt", "epochs"]),
    ("train lda train.txt", &["n-topics", "n-iterations"]),
    ("train glda train.txt --vectors vectors.txt", &["n-topics", "n-shards", "n-iterations"]),
    (
        "tag train train.conll --column 2",
        &["window", "n-hidden", "n-iterations", "epochs", "pos-column"],
    ),
];

#[test]
fn absurd_sizes_are_refused() {
    let folder = folder();
    for (command, names) in SIZES {
        for name in *names {
            for value in ABSURD {
                assert_refused(&folder, &format!("{command} --{name} {value}"));
            }
        }
    }
}

/// Limits that exceed the text have no effect. They are not refused, and they allocate nothing.
#[test]
fn absurd_limits_are_harmless() {
    let folder = folder();
    let fhmm = "train fhmm train.txt --n-layers 2 --n-states 2 --epochs 0";
    for command in [
        "train ngram train.txt --cache-weight 0.1 --valid valid.txt --cache-size",
        &format!("{fhmm} --batch-sentences"),
        &format!("{fhmm} --rare-count"),
        &format!("{fhmm} --keep-sentences"),
        "train ngram train.txt --max-vocab",
        "tag train train.conll --column 2 --n-iterations 1 --min-count",
    ] {
        for value in [1 << 40, u64::MAX] {
            let ran = run(&folder, &format!("{command} {value}"));
            assert_eq!(ran.code, Some(0), "{command} {value}: {}", ran.stderr);
        }
    }
}

/// Sizes that the parameters allow, but not the memory.
const TOO_LARGE: &[(&str, &str)] = &[
    ("train hmm train.txt --n-states 131072", "lower `--n-states`"),
    ("train hmm train.txt --n-states 131072 --parameterization scalar", "lower `--n-states`"),
    ("train hmm train.txt --n-states 4096 --dim 16384", "lower `--dim`"),
    ("train fhmm train.txt --n-layers 64 --n-states 1024 --m-step lbfgs", "lower `--n-states`"),
    ("train ff train.txt --order 100 --dim 16384", "lower `--dim`"),
    ("train rnn train.txt --dim 16384", "lower `--dim`"),
    ("train lstm train.txt --dim 16384 --n-layers 100", "lower `--dim`"),
    ("train word2vec train.txt --dim 65536", "lower `--dim`"),
];

#[test]
fn sizes_beyond_the_memory_are_refused_with_the_parameter_to_lower() {
    let folder = folder();
    for (command, hint) in TOO_LARGE {
        let message = assert_refused(&folder, command);
        assert!(message.contains("of memory, of which"), "{command}: {message}");
        assert!(message.contains("within the resource limits"), "{command}: {message}");
        assert!(message.contains(hint), "{command}: {message}");
        assert!(message.contains("`--force`"), "{command}: {message}");
    }
}

#[test]
fn a_dry_run_tells_the_cost_and_writes_nothing() {
    let folder = folder();
    let before = folder.names();
    for (command, _) in SIZES {
        let files = "--log log.jsonl -o model --dry-run";
        let estimate = folder.json(&format!("{command} {files}"));
        let bytes = |value: &serde_json::Value| value.as_u64().unwrap();
        let parts = estimate["parts"].as_array().unwrap();
        assert!(parts.len() > 1, "{command}: {estimate}");
        let sum: u64 = parts.iter().map(|part| bytes(&part["bytes"])).sum();
        assert!(bytes(&estimate["memory_bytes"]) + parts.len() as u64 >= sum, "{estimate}");
        assert!(estimate["multiply_adds_per_iteration"].as_f64().unwrap() > 0.0, "{estimate}");
        assert!(estimate["seconds_per_iteration"].as_f64().unwrap() > 0.0, "{estimate}");
        assert!(bytes(&estimate["iterations"]) > 0, "{command}: {estimate}");
        let text = folder.run(&format!("{command} {files} --quiet"));
        assert_eq!(text.code, Some(0), "{}", text.stderr);
        assert!(text.stdout.contains("multiply-adds per iteration"), "{}", text.stdout);
        assert!(text.stdout.contains("time per iteration"), "{}", text.stdout);
        assert_eq!(folder.names(), before, "{command}");
    }
}

#[test]
fn a_dry_run_does_not_know_the_time_on_a_gpu() {
    let estimate = folder().json("train lstm train.txt --device cuda --dry-run");
    assert!(estimate["multiply_adds_per_iteration"].as_f64().unwrap() > 0.0, "{estimate}");
    assert!(estimate.as_object().unwrap()["seconds_per_iteration"].is_null(), "{estimate}");
}

#[test]
fn a_dry_run_of_what_cannot_fit_succeeds_with_a_warning() {
    let folder = folder();
    let ran = run(&folder, "train hmm train.txt --n-states 131072 --dry-run");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("warning: training needs about"), "{}", ran.stderr);
}

#[test]
fn force_excludes_a_dry_run() {
    let folder = folder();
    let ran = folder.run("train ngram train.txt -o model --force --dry-run");
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert_eq!(folder.run("train ngram train.txt -o model --force").code, Some(0));
}
