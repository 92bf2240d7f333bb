//! `latens train ngram --memory` with the real program.
#![cfg(target_os = "linux")]

mod common;

use common::{Folder, Ran};
use std::fs;
use std::process::Command;

/// Runs a shell command before `latens`, with a folder for temporary files.
fn run(folder: &Folder, before: &str, args: &str) -> Ran {
    let mut command = Command::new("sh");
    let script = format!("{before} exec \"$0\" \"$@\"");
    command.current_dir(folder.path()).args(["-c", &script, env!("CARGO_BIN_EXE_latens")]);
    command.args(args.split_whitespace()).env("TMPDIR", "temporary").env("NO_COLOR", "1");
    Ran::new(command.output().unwrap())
}

fn folder() -> Folder {
    let folder = Folder::with_embedded_corpus();
    fs::create_dir(folder.path().join("temporary")).unwrap();
    folder
}

#[track_caller]
fn assert_nothing_left(folder: &Folder) {
    let left = fs::read_dir(folder.path().join("temporary")).unwrap().count();
    assert_eq!(left, 0, "temporary files were left");
}

#[test]
fn the_model_is_the_same_with_and_without_a_limit() {
    let folder = folder();
    let train = "train ngram train.txt --min-counts 1,1,1,2 --threads";
    for (n_threads, options) in [(1, "-o a"), (1, "--memory 20M -o b"), (2, "--memory 24M -o c")] {
        let ran = run(&folder, "", &format!("{train} {n_threads} {options}"));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert!(read("a") == read("b") && read("a") == read("c"));
    assert_nothing_left(&folder);
}

#[test]
fn a_limit_that_is_too_small_is_refused_with_the_smallest() {
    let folder = folder();
    let ran = run(&folder, "", "train ngram train.txt --memory 1M -o model");
    ran.assert_refused("memory");
    assert!(ran.stderr.contains("at least") && ran.stderr.contains("1.0 MiB"), "{}", ran.stderr);
    let ran = run(&folder, "", "train ngram train.txt --memory 1X -o model");
    ran.assert_refused("K, M or G");
    let ran = run(&folder, "", "train ngram train.txt --memory 1G --resume -o model");
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(!folder.path().join("model").exists());
    assert_nothing_left(&folder);
}

#[test]
fn a_dry_run_tells_the_limit() {
    let folder = folder();
    let ran = run(&folder, "", "train ngram train.txt --memory 64M --dry-run");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("memory limit "), "{}", ran.stdout);
    assert_nothing_left(&folder);
}

#[test]
fn an_unusable_temporary_folder_is_one_error() {
    let folder = folder();
    let train = "train ngram train.txt --memory 64M -o model";
    // A write beyond the limit of the size of files fails as on a full disk.
    let full = run(&folder, "trap '' XFSZ; ulimit -f 128;", train);
    full.assert_refused("temporary folder `temporary`");
    assert_nothing_left(&folder);
    fs::remove_dir(folder.path().join("temporary")).unwrap();
    run(&folder, "", train).assert_refused("temporary folder `temporary`");
    assert_eq!(folder.names(), ["test.txt", "train.txt", "valid.txt"]);
}
