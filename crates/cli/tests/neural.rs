//! Neural language models with the real program.

mod common;

use common::{Folder, Ran};
use std::fs;
use std::process::{Command, Stdio};

fn train(folder: &Folder, args: &str) -> Ran {
    let ran = folder.run(&format!("train {args} -o model"));
    if ran.code != Some(0) {
        assert!(!folder.path().join("model").exists(), "no model after {args}");
        assert!(!folder.names().iter().any(|name| name.contains(".part")), "{:?}", folder.names());
    }
    ran
}

#[test]
fn all_networks_train_score_and_sample() {
    let folder = Folder::with_embedded_corpus();
    for (kind, flags) in [
        ("ff", "--order 3 --n-layers 1 --batch-size 64"),
        ("rnn", "--squash sigmoid --bptt 8 --memory reset --optimizer adamw --learning-rate 0.003"),
        ("lstm", "--n-layers 1 --bptt 8 --tying separate --schedule cosine"),
    ] {
        let args = format!(
            "train {kind} train.txt --valid valid.txt --min-count 4 --dim 12 --epochs 2 {flags} \
             --log log.jsonl -o {kind}.model"
        );
        let trained = folder.json(&args);
        assert_eq!(trained["model"], kind);
        let (metrics, vocab) = (&trained["metrics"], trained["vocab"].as_f64().unwrap());
        assert!(metrics["valid_perplexity"].as_f64().unwrap() < vocab, "{metrics}");
        let log = fs::read_to_string(folder.path().join("log.jsonl")).unwrap();
        let lines: Vec<serde_json::Value> =
            log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(lines.len() >= 2 && lines[0]["iteration"] == 1, "{log}");
        for name in ["train_perplexity", "valid_perplexity", "learning_rate", "seconds_per_epoch"] {
            assert!(lines[0][name].is_f64(), "{name} in {log}");
        }

        let inspected = folder.json(&format!("inspect {kind}.model"));
        assert_eq!(inspected["model"], kind);
        assert_eq!(inspected["parameters"]["dim"], 12);
        let valid = folder.json(&format!("perplexity {kind}.model valid.txt"));
        let (a, b) = (&valid["perplexity"], &metrics["valid_perplexity"]);
        assert!((a.as_f64().unwrap() - b.as_f64().unwrap()).abs() < 1e-6, "{a} and {b}");
        let sampled = folder.json(&format!("sample {kind}.model -n 3"));
        assert_eq!(sampled["sentences"].as_array().unwrap().len(), 3);
    }
    folder.run("encode rnn.model test.txt -o out.npy").assert_refused("recurrent language model");
}

#[test]
fn a_recurrent_network_is_initialized_from_a_linear_dynamical_system() {
    let folder = Folder::with_embedded_corpus();
    let words = "--min-count 4";
    folder.json(&format!("train lds train.txt {words} --dim 10 --n-iterations 3 -o lds"));
    let rnn = format!("rnn train.txt --valid valid.txt {words} --dim 10");
    let perplexity = |flags: &str| {
        let trained = folder.json(&format!("train {rnn} --epochs 0 {flags} -o model"));
        trained["metrics"]["valid_perplexity"].as_f64().unwrap()
    };
    let (drawn, begun) = (perplexity(""), perplexity("--init lds --init-scale 0.3"));
    // Random weights with the frequencies of the words as biases know nothing of their order.
    assert!(begun < 0.9 * drawn, "{begun} and {drawn}");
    assert!(perplexity("--init lds --init-state filtered --init-scale 0.3") < 0.9 * drawn);
    fs::remove_file(folder.path().join("model")).unwrap();

    train(&folder, &format!("rnn train.txt {words} --dim 11 --init lds"))
        .assert_refused("`dim` must be 10, the dimension of the initial model, got 11");
    train(&folder, "rnn train.txt --min-count 3 --dim 10 --init lds")
        .assert_refused("`init` must be a model with the same vocabulary");
    train(&folder, &format!("{rnn} --init lds --tying shared"))
        .assert_refused("`tying` must be `separate`");
    train(&folder, &format!("{rnn} --init absent")).assert_refused("`absent`");
    folder.json(&format!("train ngram train.txt {words} -o ngram"));
    train(&folder, &format!("{rnn} --init ngram"))
        .assert_refused("cannot initialize from `ngram`: it is an n-gram language model");
}

#[test]
fn divergence_is_an_error_that_names_the_learning_rate() {
    let folder = Folder::with_embedded_corpus();
    let flags = "train.txt --min-count 4 --dim 8 --epochs 3 --clip 1e30 --learning-rate 1e9";
    for kind in ["ff --optimizer sgd --weight-decay 0", "rnn", "lstm"] {
        train(&folder, &format!("{kind} {flags}")).assert_refused("lower `learning_rate`");
    }
}

#[test]
fn unusual_texts_are_trained_on_or_rejected() {
    let folder = Folder::new();
    folder.write("one", "a b c\n");
    folder.write("empty", "");
    for kind in ["ff", "rnn", "lstm"] {
        let trained = train(&folder, &format!("{kind} one --dim 4 --epochs 2 --valid one"));
        assert_eq!(trained.code, Some(0), "{}", trained.stderr);
        fs::remove_file(folder.path().join("model")).unwrap();
        train(&folder, &format!("{kind} empty")).assert_refused("`empty` is empty");
        train(&folder, &format!("{kind} one --valid empty")).assert_refused("`empty` is empty");
        train(&folder, &format!("{kind} one --dropout 1")).assert_refused("`dropout` must be");
        if cfg!(not(feature = "cuda")) {
            train(&folder, &format!("{kind} one --device cuda"))
                .assert_refused("cannot use the device `cuda`");
        }
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_leaves_a_checkpoint_and_resume_gives_the_same_model() {
    use std::io::{BufRead, Read};

    let folder = Folder::with_embedded_corpus();
    let args = "train rnn train.txt --valid valid.txt --min-count 4 --dim 30 --epochs 3";
    let mut child = folder
        .interruptible(nix::sys::signal::SigHandler::SigDfl)
        .args(args.split_whitespace().chain(["-o", "model"]))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2), "{rest}");
    assert!(folder.names().contains(&"model.checkpoint".to_owned()), "{:?}", folder.names());
    folder.json(&format!("{args} -o model --resume"));
    folder.json(&format!("{args} -o undisturbed"));
    let scores =
        ["model", "undisturbed"].map(|model| folder.json(&format!("perplexity {model} test.txt")));
    assert_eq!(scores[0], scores[1]);
}
