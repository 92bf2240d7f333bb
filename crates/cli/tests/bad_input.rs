//! Bad input with the real program: one clear message, exit 2, nothing half-written, never a panic.

mod common;

use common::{Folder, Ran};
use latens::math::Rng;
use std::fs;
use std::io::{BufRead, Read, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

fn train(folder: &Folder, args: &str) -> Ran {
    let ran = folder.run(&format!("train ngram {args} -o model"));
    if ran.code != Some(0) {
        assert!(!folder.path().join("model").exists(), "no model after {args}");
        assert!(!folder.names().iter().any(|name| name.contains(".part")), "{:?}", folder.names());
    }
    ran
}

#[test]
fn files_that_are_no_text_are_refused() {
    let folder = Folder::new();
    folder.write("empty", "");
    folder.write("blank", "\n \n\t\n");
    folder.write("broken", b"good line\nbad \xff\xfe line\n");
    folder.write("nul", b"good line\nNUL \0 line\n");
    folder.write("a.gz", "this is no gzip");
    fs::create_dir(folder.path().join("folder")).unwrap();
    train(&folder, "empty").assert_refused("`empty` is empty");
    train(&folder, "blank").assert_refused("no words in `blank`");
    train(&folder, "missing").assert_refused("cannot read `missing`");
    train(&folder, "folder").assert_refused("cannot read `folder`");
    train(&folder, "broken").assert_refused("`broken` is not UTF-8: invalid bytes in line 2");
    train(&folder, "nul").assert_refused("`nul` is not plain text: NUL byte in line 2");
    train(&folder, "a.gz").assert_refused("cannot read `a.gz`");
    assert!(train(&folder, "broken").stderr.contains("hint: "));
    assert_eq!(train(&folder, "broken --invalid replace").code, Some(0));
    assert_eq!(train(&folder, "nul --invalid replace").code, Some(0));
}

#[test]
fn lines_that_do_not_fit_the_format_are_named() {
    let folder = Folder::new();
    folder.write("a.tsv", "label\ttext\nno tab here\n");
    folder.write("a.jsonl", "{\"text\": \"fine\"}\n{broken\n");
    folder.write("a.conllu", "1\tshort\n");
    train(&folder, "a.tsv").assert_refused("`a.tsv`, line 2");
    train(&folder, "a.jsonl").assert_refused("`a.jsonl`, line 2");
    train(&folder, "a.conllu").assert_refused("`a.conllu`, line 1");
}

#[test]
fn a_line_of_ten_megabytes_is_read() {
    let folder = Folder::new();
    let line = "word other ".repeat(10_000_000 / 11);
    folder.write("long", &line);
    let ran = folder.json("train ngram long --order 2 -o model");
    assert_eq!(ran["tokens"], 2 * (10_000_000 / 11) + 1);
    folder.write("letter", "x".repeat(10_000_000));
    assert_eq!(folder.json("train ngram letter -o model")["tokens"], 2);
}

#[test]
fn parameters_out_of_range_are_named() {
    let folder = Folder::new();
    folder.write("text", "some words\n");
    train(&folder, "text --order 7").assert_refused("`order` must be 1 to 6, got 7");
    train(&folder, "text --cache-weight 1").assert_refused("`cache_weight` must be");
    train(&folder, "text --min-counts 3,1").assert_refused("`min_counts` must be");
    train(&folder, "text --resume").assert_refused("no checkpoint `model.checkpoint`");
    assert_eq!(folder.run("train ngram text --no-such-flag -o model").code, Some(2));
    folder.run("reproduce no-such --data .").assert_refused("no experiment `no-such`");
    folder.run("reproduce lm-baselines --data .").assert_refused("ptb-lm");
}

#[test]
fn outputs_that_cannot_be_written_are_refused_before_the_work() {
    let folder = Folder::new();
    folder.write("text", "some words\n");
    fs::create_dir(folder.path().join("folder")).unwrap();
    folder.run("train ngram text -o folder").assert_refused("cannot write `folder`");
    folder.run("train ngram text -o absent/model").assert_refused("cannot write `absent/model`");
    folder
        .run("count text --lags 2 -o absent/counts")
        .assert_refused("cannot write `absent/counts`");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let folder = Folder::new();
    folder.write("text", "some words\n");
    let ran = folder.run("train ngram text -o /dev/full");
    ran.assert_refused("cannot write `/dev/full`");
    assert!(ran.stderr.contains("hint: free some space"), "{}", ran.stderr);
    folder.run("vocab text -o /dev/full").assert_refused("cannot write `/dev/full`");
}

#[test]
fn a_damaged_model_is_never_used() {
    let folder = Folder::new();
    folder.write("text", "a b c a b\nb c a\n".repeat(20));
    assert_eq!(train(&folder, "text --order 3").code, Some(0));
    let whole = fs::read(folder.path().join("model")).unwrap();
    let mut rng = Rng::new(1);
    let mut below = |n: usize| (rng.uniform() * n as f64) as usize;
    for _ in 0..10 {
        folder.write("cut", &whole[..below(whole.len())]);
        folder.run("perplexity cut text").assert_refused("`cut` is");
    }
    // A thousand flips are tried in the library's own tests; the program shares that code.
    for _ in 0..25 {
        let mut damaged = whole.clone();
        damaged[below(whole.len())] ^= 1 << below(8);
        folder.write("flipped", &damaged);
        let ran = folder.run("perplexity flipped text");
        ran.assert_refused("flipped");
    }
    folder.write("foreign", "just some text, not a model\n");
    folder.run("perplexity foreign text").assert_refused("`foreign` is not a latens model");
    folder.run("inspect text").assert_refused("not a latens model");
    folder.run("inspect missing").assert_refused("cannot read `missing`");
}

#[test]
fn foreign_counts_and_vocabularies_are_refused() {
    let folder = Folder::new();
    folder.write("a", "x y z\n");
    folder.write("b", "p q r\n");
    folder.json("count a --lags 2 -o a.counts");
    folder.json("count b --lags 2 -o b.counts");
    folder.run("count --merge a.counts b.counts -o c").assert_refused("another vocabulary");
    folder.run("count --merge a -o c").assert_refused("`a` is no");
    folder.run("count a --lags 0 -o c").assert_refused("lags");
    folder.run("train ngram a --vocab b -o model").assert_refused("`b` is no vocabulary");
    assert_eq!(folder.names(), ["a", "a.counts", "b", "b.counts"]);
}

#[cfg(unix)]
#[test]
fn ctrl_c_leaves_nothing_behind() {
    let folder = Folder::new();
    let mut child = folder
        .command()
        .args(["train", "ngram", "-", "-o", "model"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"some words\n").unwrap();
    // It now waits for more text.
    std::thread::sleep(Duration::from_millis(200));
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert!(!child.wait().unwrap().success());
    drop(stdin);
    assert!(folder.names().is_empty(), "{:?}", folder.names());
}

#[cfg(unix)]
#[test]
fn ctrl_c_leaves_a_checkpoint_and_resume_gives_the_same_model() {
    let folder = Folder::new();
    // Enough words that counting them takes a while.
    let words = (0..2_000_000u64).map(|i| format!("w{}", i * i % 9973));
    let text: String =
        words.enumerate().map(|(i, w)| w + if i % 20 == 19 { "\n" } else { " " }).collect();
    folder.write("text", text);
    let mut child = folder
        .command()
        .args(["train", "ngram", "text", "-o", "model"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains("tokens"), "it has read the text: {line}");
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2), "{rest}");
    assert!(rest.contains("error: interrupted; no model was written"), "{rest}");
    assert!(rest.contains("go on with `--resume`"), "{rest}");
    assert_eq!(folder.names(), ["model.checkpoint", "text"]);
    // Other parameters are refused, with what differs.
    let other = folder.run("train ngram text -o model --resume --order 4");
    other.assert_refused("cannot go on from the checkpoint");
    assert!(other.stderr.contains("`order`"), "{}", other.stderr);
    folder.json("train ngram text -o model --resume");
    folder.json("train ngram text -o undisturbed");
    assert_eq!(folder.names(), ["model", "text", "undisturbed"]);
    let scores =
        ["model", "undisturbed"].map(|model| folder.json(&format!("perplexity {model} text")));
    assert_eq!(scores[0], scores[1]);
}
