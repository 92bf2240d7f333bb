//! Factorial hidden Markov models with the real program.

mod common;

use common::{Folder, Ran};
use serde_json::Value;

fn train(folder: &Folder, args: &str) -> Ran {
    let ran = folder.run(&format!("train fhmm {args} -o model"));
    if ran.code != Some(0) {
        assert!(!folder.path().join("model").exists(), "no model after {args}");
        assert!(!folder.names().iter().any(|name| name.contains(".part")), "{:?}", folder.names());
    }
    ran
}

const SMALL: &str = "train fhmm train.txt --n-layers 2 --n-states 4 --batch-sentences 200";

#[test]
fn a_trained_model_encodes_new_text() {
    let folder = Folder::with_embedded_corpus();
    let trained =
        folder.json(&format!("{SMALL} --epochs 2 --valid valid.txt --log log.jsonl -o model"));
    assert_eq!(trained["model"], "fhmm");
    let metrics = &trained["metrics"];
    let bound = |name: &str| metrics[name].as_f64().unwrap();
    assert!(bound("train_bound") < 0.0 && bound("valid_bound") < 0.0 && bound("sweeps") >= 1.0);
    let log = std::fs::read_to_string(folder.path().join("log.jsonl")).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.len() >= 2 && lines[0]["iteration"] == 1 && lines[1]["iteration"] == 2);
    let bounds = |i: usize| lines[i]["train_bound"].as_f64().unwrap();
    assert!(bounds(1) > bounds(0), "{log}");

    for (kind, dim) in [("", 8), ("viterbi", 8), ("posterior", 8)] {
        let flag = if kind.is_empty() { String::new() } else { format!("--features {kind}") };
        let encoded = folder.json(&format!("encode model test.txt {flag} -o out.npy"));
        assert_eq!(encoded["dim"], dim);
        assert_eq!(encoded["features"], if kind.is_empty() { "viterbi" } else { kind });
    }
    // One state of each of the two layers for every word, those among them that the model never saw.
    folder.write("new", "Zyxwvuting the unheard-of 12345\n");
    let states = folder.run("encode model new");
    let lines: Vec<&str> = states.stdout.lines().collect();
    assert!(lines[..4].iter().all(|line| line.matches(":1").count() == 2), "{}", states.stdout);
    folder.run("perplexity model test.txt").assert_refused("not a language model");
    assert_eq!(folder.json("inspect model")["model"], "fhmm");
}

#[test]
fn every_inference_and_number_of_threads_works() {
    let folder = Folder::with_embedded_corpus();
    for inference in ["auto", "exact-mf", "tilted", "jensen", "exact"] {
        let command = format!("{SMALL} --epochs 1 --keep-sentences 300 --inference {inference}");
        let one = folder.json(&format!("{command} --threads 1 -o a"));
        let two = folder.json(&format!("{command} --threads 2 -o b"));
        assert_eq!(one["metrics"]["train_bound"], two["metrics"]["train_bound"], "{inference}");
        assert!(one["tokens"].as_u64().unwrap() < 20_000);
    }
}

#[test]
fn invalid_parameters_and_texts_are_rejected() {
    let folder = Folder::with_embedded_corpus();
    for (args, reason) in [
        ("train.txt --n-layers 40 --n-states 1000 --inference exact-mf", "is at most 1048576"),
        ("train.txt --n-layers 6 --inference exact", "is at most 131072"),
        ("train.txt --n-layers 0", "`n_layers` must be at least 1"),
        ("train.txt --n-states 1", "`n_states` must be at least 2"),
        ("train.txt --prior 0", "`prior` must be"),
        ("train.txt --keep-sentences 0", "`--keep-sentences` must be at least 1"),
        ("train.txt --resume", "does not exist"),
    ] {
        train(&folder, args).assert_refused(reason);
    }
    folder.write("empty", "");
    train(&folder, "empty").assert_refused("`empty` is empty");
    folder.write("blank", "\n\n");
    train(&folder, "blank").assert_refused("there are no words in `blank`");
    folder.write("one", "a a a\na a\n");
    let one = train(&folder, "one --n-layers 2 --n-states 2");
    assert_eq!(one.code, Some(0), "{}", one.stderr);
    assert!(!one.stdout.contains("NaN"), "{}", one.stdout);
}
