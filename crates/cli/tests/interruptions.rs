//! Signals, locks and disks that fail while the real program trains.

#![cfg(unix)]

mod common;

use common::Folder;
use latens::corpus::embedded::{self, Split};
use nix::sys::signal::{SigHandler, Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStderr, Stdio};
use std::time::Duration;

/// A text that takes a while to count.
fn long_text() -> String {
    let words = (0..2_000_000u64).map(|i| format!("w{}", i * i % 9973));
    words.enumerate().map(|(i, w)| w + if i % 20 == 19 { "\n" } else { " " }).collect()
}

/// Starts a training that waits for its text, and waits until it has locked `model`.
fn waiting_training(folder: &Folder, interrupt: SigHandler) -> Child {
    let mut command = folder.interruptible(interrupt);
    let command = command.args(["train", "ngram", "-", "-o", "model"]);
    let child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !folder.path().join("model.lock").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

/// Waits until a training has read its text and stops at checkpoints.
fn wait_for_training(child: &mut Child) -> BufReader<ChildStderr> {
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains("tokens"), "it has read the text: {line}");
    stderr
}

fn send(signal: Signal, child: &Child) {
    kill(Pid::from_raw(child.id().try_into().unwrap()), signal).unwrap();
}

#[test]
fn ctrl_c_leaves_nothing_behind() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let folder = Folder::new();
        let mut child = waiting_training(&folder, SigHandler::SigDfl);
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"some words\n").unwrap();
        send(signal, &child);
        let status = child.wait().unwrap();
        drop(stdin);
        assert_eq!(status.signal(), Some(signal as i32), "{status}");
        assert!(folder.names().is_empty(), "{:?}", folder.names());
    }
}

#[test]
fn signals_that_were_ignored_stay_ignored() {
    let folder = Folder::new();
    let mut child = waiting_training(&folder, SigHandler::SigIgn);
    send(Signal::SIGINT, &child);
    send(Signal::SIGHUP, &child);
    child.stdin.take().unwrap().write_all(b"some words\n").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(folder.names(), ["model"]);
}

#[test]
fn ctrl_c_leaves_a_checkpoint_and_resume_gives_the_same_model() {
    let folder = Folder::new();
    folder.write("text", long_text());
    let mut child = folder
        .interruptible(SigHandler::SigDfl)
        .args(["train", "ngram", "text", "-o", "model"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = wait_for_training(&mut child);
    send(Signal::SIGINT, &child);
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2), "{rest}");
    assert!(rest.contains("error: interrupted; no model was written"), "{rest}");
    assert!(rest.contains("continue from the checkpoint"), "{rest}");
    assert!(rest.contains("stopping at the next checkpoint"), "{rest}");
    assert_eq!(folder.names(), ["model.checkpoint", "text"]);
    let inspected = folder.json("inspect model.checkpoint");
    assert_eq!(inspected["checkpoint"]["of"], "ngram");
    assert!(inspected["checkpoint"]["state"].is_object(), "{inspected}");
    let inspected = folder.run("inspect model.checkpoint").stdout;
    assert!(inspected.contains("of a model of kind ngram"), "{inspected}");
    // Other parameters are refused, with what differs.
    let other = folder.run("train ngram text -o model --resume --order 4");
    other.assert_refused("cannot resume from the checkpoint");
    assert!(other.stderr.contains("`order`"), "{}", other.stderr);
    // A run that neither wrote it nor went on from it leaves it alone.
    let small = folder.write("small", "a b\n");
    folder.json("train ngram small -o model");
    fs::remove_file(small).unwrap();
    assert_eq!(folder.names(), ["model", "model.checkpoint", "text"]);
    folder.json("train ngram text -o model --resume");
    folder.json("train ngram text -o undisturbed");
    assert_eq!(folder.names(), ["model", "text", "undisturbed"]);
    let scores =
        ["model", "undisturbed"].map(|model| folder.json(&format!("perplexity {model} text")));
    assert_eq!(scores[0], scores[1]);
}

/// Interrupts a training whose checkpoint cannot be written, and returns what it says.
fn interrupt_without_place(folder: &Folder, temporary: &str) -> String {
    let mut child = folder
        .interruptible(SigHandler::SigDfl)
        .args(["train", "ngram", "text", "-o", "model"])
        .env("TMPDIR", folder.path().join(temporary))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = wait_for_training(&mut child);
    fs::create_dir(folder.path().join("model.checkpoint")).unwrap();
    send(Signal::SIGINT, &child);
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2), "{rest}");
    fs::remove_dir(folder.path().join("model.checkpoint")).unwrap();
    rest
}

#[test]
fn a_checkpoint_that_cannot_be_written_is_saved_elsewhere() {
    let folder = Folder::new();
    folder.write("text", long_text());
    fs::create_dir(folder.path().join("temporary")).unwrap();
    let said = interrupt_without_place(&folder, "temporary");
    assert!(said.contains("cannot write `model.checkpoint`"), "{said}");
    let (_, path) = said.split_once("the checkpoint is in `").expect(&said);
    let path = path.split('`').next().unwrap();
    assert!(path.starts_with(folder.path().join("temporary").to_str().unwrap()), "{path}");
    fs::rename(path, folder.path().join("model.checkpoint")).unwrap();
    folder.json("train ngram text -o model --resume");
    folder.json("train ngram text -o undisturbed");
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert!(read("model") == read("undisturbed"));
    // Nowhere at all.
    let said = interrupt_without_place(&folder, "absent");
    assert!(said.contains("error: interrupted, and the checkpoint could not be written"), "{said}");
    assert!(said.contains("`model.checkpoint`") && said.contains("absent`"), "{said}");
}

#[test]
fn two_trainings_of_one_model_are_refused() {
    let folder = Folder::new();
    folder.write("text", "a b c a b\n");
    std::os::unix::fs::symlink("model", folder.path().join("link")).unwrap();
    let mut child = waiting_training(&folder, SigHandler::SigDfl);
    for output in ["model", "./model", "link"] {
        let ran = folder.run(&format!("train brown text --n-clusters 2 -o {output}"));
        ran.assert_refused(&format!("another process is writing `{output}`"));
        assert!(ran.stderr.contains("hint: "), "{}", ran.stderr);
    }
    folder.json("train ngram text -o other");
    // A dead process holds no lock.
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(folder.names(), ["link", "model.lock", "other", "text"]);
    folder.json("train ngram text -o model");
    assert_eq!(folder.names(), ["link", "model", "other", "text"]);
}

#[test]
fn a_foreign_file_with_the_name_of_the_lock_is_left_alone() {
    let folder = Folder::new();
    folder.write("text", "a b c a b\n");
    folder.write("model.lock", "mine");
    folder.run("train ngram text -o model").assert_refused("exists and is not a lock file");
    assert_eq!(fs::read(folder.path().join("model.lock")).unwrap(), b"mine");
    assert_eq!(folder.names(), ["model.lock", "text"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_log_that_cannot_be_written_costs_no_model() {
    let folder = Folder::new();
    folder.write("text", "a b c a b\n");
    for command in ["train lda text --keep-all --n-topics 2 --n-iterations 5", "train ngram text"] {
        let ran = folder.run(&format!("{command} --log /dev/full -o model"));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let n_warnings = ran.stderr.matches("warning: cannot write the log").count();
        assert_eq!(n_warnings, 1, "{}", ran.stderr);
        fs::remove_file(folder.path().join("model")).unwrap();
    }
    assert_eq!(folder.names(), ["text"]);
}

#[test]
fn a_tagger_with_a_development_set_resumes_with_its_best_weights() {
    let folder = Folder::new();
    for split in Split::ALL {
        folder.write(&format!("{}.conll", split.name()), embedded::tagged(split));
    }
    for flags in ["--n-iterations 60", "--optimizer perceptron --epochs 15"] {
        let args =
            format!("tag train train.conll --column 2 --dev valid.conll --patience 0 {flags}");
        folder.json(&format!("{args} -o undisturbed --log undisturbed.jsonl"));
        let scores = |log: &str| -> Vec<(u64, f64)> {
            let log = fs::read_to_string(folder.path().join(log)).unwrap_or_default();
            let rows = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            rows.filter_map(|row| Some((row["iteration"].as_u64()?, row["dev_score"].as_f64()?)))
                .collect()
        };
        let mut child = folder
            .interruptible(SigHandler::SigDfl)
            .args(format!("{args} -o model --log log.jsonl").split(' '))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while scores("log.jsonl").is_empty() {
            std::thread::sleep(Duration::from_millis(5));
        }
        send(Signal::SIGINT, &child);
        assert_eq!(child.wait().unwrap().code(), Some(2), "{flags}");
        let checkpoint = folder.json("inspect model.checkpoint");
        assert!(checkpoint["checkpoint"]["state"]["best"]["score"].is_number(), "{checkpoint}");
        folder.json(&format!("{args} -o model --log log.jsonl --resume"));
        assert_eq!(scores("log.jsonl"), scores("undisturbed.jsonl"), "{flags}");
        let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
        assert!(read("model") == read("undisturbed"), "{flags}");
        fs::remove_file(folder.path().join("log.jsonl")).unwrap();
        fs::remove_file(folder.path().join("undisturbed.jsonl")).unwrap();
    }
}
