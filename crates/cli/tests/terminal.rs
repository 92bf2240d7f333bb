//! What reaches a terminal: no control characters from words, names of files and model files. Files and pipes keep them.
#![cfg(unix)]

mod common;

use common::Folder;
use std::fs::{self, File};
use std::io::Read;
use std::process::Stdio;

/// A word that would set the title of a terminal, in both spellings of the control sequence, and reverse what follows.
const EVIL: &str = "owned\u{1b}]0;title\u{7}\u{9d}0;title\u{9c}\u{202e}\u{7f}";

/// Runs a command on a pseudo-terminal, which receives standard output and standard error.
fn on_terminal(folder: &Folder, args: &[&str]) -> String {
    let pty = nix::pty::openpty(None, None).unwrap();
    let mut command = folder.command();
    command.args(args).stdin(Stdio::null());
    command.stdout(pty.slave.try_clone().unwrap()).stderr(pty.slave);
    let mut child = command.spawn().unwrap();
    // The terminal ends with the last process that has it open.
    drop(command);
    let (mut master, mut bytes, mut buffer) = (File::from(pty.master), Vec::new(), [0; 4096]);
    // Linux reports the end as an error.
    while let Ok(n_read @ 1..) = master.read(&mut buffer) {
        bytes.extend_from_slice(&buffer[..n_read]);
    }
    child.wait().unwrap();
    // A terminal begins a new line with two characters, and our progress bars erase themselves.
    let printed = String::from_utf8(bytes).unwrap();
    printed.replace("\r\n", "\n").replace("\r\u{1b}[2K", "\n")
}

#[track_caller]
fn assert_harmless(args: &[&str], printed: &str) {
    assert!(printed.contains("owned"), "{args:?} printed {printed:?}");
    let bad = |c: char| (c.is_control() && c != '\n' && c != '\t') || c == '\u{202e}';
    assert!(!printed.contains(bad), "{args:?} printed {printed:?}");
}

/// Models that print words, and texts, all with the word [`EVIL`].
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("text.txt", format!("the {EVIL} sat\nthe dog ran\n").repeat(20));
    folder.write("docs.tsv", format!("{EVIL}\tthe {EVIL} sat\nb\tthe dog ran\n").repeat(20));
    folder.write("tags.conll", format!("the DT\n{EVIL} {EVIL}\n\n").repeat(20));
    folder.write("vectors.txt", format!("3 2\n{EVIL} 1 0\nthe 0.9 0.3\ndog 0.2 1\n"));
    for command in [
        "train ngram text.txt --order 2 -o m.ngram",
        "train brown text.txt --n-clusters 3 -o m.brown",
        "train lda docs.tsv --keep-all --n-topics 2 --n-iterations 3 -o m.lda",
        "train glda docs.tsv --keep-all --vectors vectors.txt --n-topics 2 --n-iterations 3 -o m.glda",
        "tag train tags.conll --column 2 --n-iterations 2 -o m.tagger",
        "import vectors.txt --from word2vec -o m.vectors",
    ] {
        folder.json(command);
    }
    folder
}

#[test]
fn words_of_models_and_texts_cannot_control_a_terminal() {
    let folder = folder();
    for command in [
        "sample m.ngram",
        "sample m.ngram --json",
        "nearest m.vectors the dog",
        "nearest m.vectors the --json",
        "topics show m.lda",
        "topics show m.glda --json",
        "topics infer m.lda docs.tsv --json",
        "topics infer m.lda docs.tsv",
        "topics eval m.lda --reference docs.tsv",
        "encode m.brown text.txt",
        "tag run m.tagger text.txt",
        "tag run m.tagger text.txt --json",
    ] {
        let args: Vec<&str> = command.split(' ').chain(["--quiet"]).collect();
        let printed = on_terminal(&folder, &args);
        assert_harmless(&args, &printed);
        let piped = folder.run(&args.join(" "));
        if args.contains(&"--json") {
            let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
            assert_eq!(parse(&printed), parse(&piped.stdout), "{command}");
        } else {
            assert!(piped.stdout.contains(EVIL), "{command} keeps the bytes in a pipe");
        }
    }
}

#[test]
fn names_of_files_cannot_control_a_terminal() {
    let folder = Folder::new();
    let (text, model) = (&*format!("text {EVIL}"), &*format!("model\n{EVIL}"));
    folder.write(text, "the dog ran\n");
    folder.write("bad.tsv", format!("{EVIL}\n"));
    let commands: [&[&str]; 9] = [
        &["train", "ngram", text, "--order", "2", "-o", model],
        &["vocab", text, "-o", model],
        &["perplexity", EVIL, text],
        &["perplexity", text, text],
        &["inspect", EVIL],
        &["vocab", EVIL, "-o", "v"],
        &["nearest", text, EVIL],
        &["train", "ngram", "--order", EVIL, text, "-o", "m"],
        &[EVIL],
    ];
    for args in commands {
        for quiet in [&["--quiet"][..], &[]] {
            let printed = on_terminal(&folder, &[args, quiet].concat());
            assert_harmless(args, &printed);
        }
        // Messages are escaped in a pipe, too: a terminal may show them later.
        let output = folder.command().args(args).output().unwrap();
        let messages = String::from_utf8(output.stderr).unwrap();
        assert!(!messages.contains('\u{1b}') && !messages.contains('\u{9d}'), "{messages:?}");
    }
    assert!(folder.path().join(model).exists(), "the name of the file keeps its bytes");
}

#[test]
fn drawings_with_any_words_are_valid_xml() {
    let folder = folder();
    folder.json("topics map m.glda -o map.svg");
    folder.json("topics map m.glda -o map.html");
    let picture = fs::read_to_string(folder.path().join("map.svg")).unwrap();
    let document = roxmltree::Document::parse(&picture).unwrap();
    let mut texts = document.descendants().filter_map(|node| node.text());
    assert!(texts.any(|text| text.starts_with("owned")), "{picture}");
    let page = fs::read_to_string(folder.path().join("map.html")).unwrap();
    assert!(!page.contains(|c: char| c.is_control() && c != '\n'), "{page:?}");
}
