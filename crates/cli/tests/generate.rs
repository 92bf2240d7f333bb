//! `latens generate` with the real program.

mod common;

use common::{Folder, Ran};
use serde_json::Value;

const TEXT: &str = "--tokenize words --lowercase --min-count 2";

/// A folder with a hidden Markov model and two other language models of the same vocabulary.
fn models() -> Folder {
    let folder = Folder::with_embedded_corpus();
    let train = |args: &str| {
        let ran = folder.run(&format!("train {args} -q"));
        assert_eq!(ran.code, Some(0), "{args}: {}", ran.stderr);
    };
    train(&format!(
        "hmm train.txt {TEXT} --n-states 32 --n-clusters 8 --parameterization scalar --prior 0.01 \
         --epochs 2 -o m.hmm"
    ));
    train(&format!("ngram train.txt {TEXT} -o m.ngram"));
    train(&format!("lstm train.txt {TEXT} --dim 8 --n-layers 1 --epochs 1 -o m.lstm"));
    folder
}

fn run(folder: &Folder, args: &[&str]) -> Ran {
    Ran::new(folder.command().arg("generate").args(args).output().unwrap())
}

fn json(folder: &Folder, args: &[&str]) -> Value {
    let ran = run(folder, &[args, &["--json"]].concat());
    assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

/// The sentences, all of which satisfy the constraints.
fn sentences(result: &Value) -> Vec<String> {
    let rows = result["sentences"].as_array().unwrap().iter();
    rows.map(|row| {
        assert_eq!(row["satisfied"], true, "{row}");
        assert!(row["log_prob"].as_f64().unwrap() < 0.0, "{row}");
        row["text"].as_str().unwrap().to_owned()
    })
    .collect()
}

fn has(text: &str, phrase: &str) -> bool {
    format!(" {text} ").contains(&format!(" {phrase} "))
}

#[test]
fn every_model_meets_the_constraints() {
    let folder = models();
    let constraints = [
        "--must",
        "of the",
        "--must",
        "man",
        "--must-not",
        "and",
        "--must-not",
        "in",
        "--min-words",
        "6",
        "--max-words",
        "12",
        "-n",
        "4",
    ];
    for model in [&["m.hmm"][..], &["m.ngram", "--guide", "m.hmm"], &["m.lstm", "--guide", "m.hmm"]]
    {
        for search in
            [&[][..], &["--beam", "6"], &["--top-k", "50", "--weight", "2", "--seed", "7"]]
        {
            let result = json(&folder, &[model, &constraints, search].concat());
            assert!(result["constraint_log_prob"].as_f64().unwrap() <= 0.0);
            let found = sentences(&result);
            assert_eq!(found.len(), 4, "{model:?}");
            for text in &found {
                let is_met = has(text, "of the") && has(text, "man");
                assert!(is_met && !has(text, "and") && !has(text, "in"), "{text}");
                assert!((6..=12).contains(&text.split(' ').count()), "{text}");
                assert!(!has(text, "<unk>"), "{text}");
            }
        }
        // The same seed gives the same text, and text output has one sentence per line.
        let args = [model, &constraints].concat();
        let lines = run(&folder, &args).stdout;
        let texts = sentences(&json(&folder, &args));
        assert_eq!(lines.lines().collect::<Vec<_>>(), texts);
        let alone = json(&folder, &[&args[..], &["--threads", "1"]].concat());
        assert_eq!(alone, json(&folder, &[&args[..], &["--threads", "2"]].concat()));
        assert_ne!(texts, sentences(&json(&folder, &[&args[..], &["--seed", "2"]].concat())));
    }
}

#[test]
fn gaps_are_filled_and_patterns_are_matched() {
    let folder = models();
    let fill = [
        "m.ngram",
        "--guide",
        "m.hmm",
        "--prefix",
        "It was",
        "--suffix",
        "the man .",
        "--min-words",
        "2",
        "--max-words",
        "5",
    ];
    for text in sentences(&json(&folder, &fill)) {
        let middle = text.strip_prefix("it was ").unwrap().strip_suffix(" the man .").unwrap();
        assert!((2..=5).contains(&middle.split(' ').count()), "{text}");
    }
    for text in sentences(&json(&folder, &["m.hmm", "--regex", "(the | a) /.*[aeiou]/+ \".\""])) {
        let words: Vec<&str> = text.split(' ').collect();
        assert!(["the", "a"].contains(&words[0]) && words[words.len() - 1] == ".", "{text}");
        let middle = &words[1..words.len() - 1];
        assert!(
            !middle.is_empty()
                && middle.iter().all(|word| word.ends_with(['a', 'e', 'i', 'o', 'u']))
        );
    }
    for text in sentences(&json(&folder, &["m.hmm", "--char-regex", "t.* w.* s?he"])) {
        assert!(text.starts_with('t') && text.contains(" w") && text.ends_with("he"), "{text}");
    }
    let ordered = ["m.hmm", "--must", "was", "--must", "the", "--in-order", "--ends-with", "it"];
    for text in sentences(&json(&folder, &ordered)) {
        let (_, rest) = text.split_once("was").unwrap();
        assert!(has(rest.trim(), "the") && text.ends_with(" it"), "{text}");
    }
    let best = sentences(&json(&folder, &["m.hmm", "--must", "man", "--viterbi"]));
    assert!(best.len() == 1 && has(&best[0], "man"));
}

#[test]
fn the_cost_is_told_beforehand() {
    let folder = models();
    let args = ["m.hmm", "--must", "of the", "--max-words", "10", "--dry-run"];
    let result = json(&folder, &args);
    assert_eq!(
        (result["automaton_states"].as_u64(), result["word_classes"].as_u64()),
        (Some(3), Some(3))
    );
    // 10 words, 3 automaton states, 32 hidden states.
    assert_eq!(result["multiply_adds"].as_f64(), Some(10.0 * 3.0 * 32.0 * 32.0));
    assert!(result["memory_bytes"].as_u64().unwrap() >= 10 * 3 * 32 * 8);
    // The most probable text has tables of its own, with as many multiplications.
    let viterbi = json(&folder, &[&args[..], &["--viterbi"]].concat());
    assert_eq!(viterbi["multiply_adds"].as_f64(), Some(2.0 * 10.0 * 3.0 * 32.0 * 32.0));
    let more = viterbi["memory_bytes"].as_u64().unwrap() - result["memory_bytes"].as_u64().unwrap();
    assert!(more >= 10 * 3 * 32 * 8, "{more}");
    assert!(run(&folder, &args).stdout.starts_with("automaton 3 states, 3 classes of words\n"));
    run(&folder, &["m.hmm", "--max-words", "1000000000000"])
        .assert_refused("hint: lower `--max-words`");
}

#[test]
fn each_mistake_has_one_clear_error() {
    let folder = models();
    let refused = |args: &[&str], message: &str| {
        let ran = run(&folder, args);
        ran.assert_refused(message);
        assert_eq!(ran.stderr.matches("error: ").count(), 1, "{}", ran.stderr);
    };
    refused(
        &["m.hmm", "--must", "the zyzzyva"],
        "error: the phrase `the zyzzyva`: the word `zyzzyva` is not in the vocabulary of the model\n\n\
         hint: check the spelling",
    );
    refused(&["m.hmm", "--must", ""], "contains no words");
    refused(
        &["m.hmm", "--must", "man", "--must", "the", "--must-not", "the man", "--regex", "the man"],
        "the excluded phrase `the man` and the pattern `the man` contradict each other",
    );
    refused(
        &["m.hmm", "--must", "of the man", "--max-words", "2"],
        "the constraint needs at least 3 words, and at most 2 are allowed",
    );
    refused(&["m.hmm", "--regex", ".{3}", "--min-words", "5"], "contradict each other");
    refused(&["m.hmm", "--min-words", "5", "--max-words", "4"], "minimum 5 is above the maximum 4");
    refused(&["m.hmm", "--regex", "the ("], "missing `)` at character");
    refused(&["m.hmm", "--char-regex", "the ["], "unclosed character class");
    refused(
        &["m.hmm", "--must", "of", "--must", "the", "--must", "man", "--max-states", "7"],
        "is too large: more than 7 states",
    );
    refused(&["m.hmm", "--prefix", "the man", "--must-not", "man"], "no text that begins with");
    refused(&["m.ngram", "--must", "man"], "needs a guide");
    refused(&["m.ngram", "--guide", "m.ngram"], "only a hidden Markov model can be a guide");
    let other = "train hmm train.txt --n-states 4 --constraint none --parameterization scalar \
                 --epochs 1 -o other.hmm -q";
    assert_eq!(folder.run(other).code, Some(0));
    refused(
        &["m.ngram", "--guide", "other.hmm"],
        "the vocabulary of the guide differs from that of the model",
    );
    // Bad arguments are refused before any file is opened.
    for args in [
        &["m", "-n", "0"][..],
        &["m", "--weight", "-1"],
        &["m", "--in-order"],
        &["m", "--beam", "3", "--top-k", "2"],
        &["m", "--viterbi", "--guide", "g"],
    ] {
        assert_eq!(run(&folder, args).code, Some(2), "{args:?}");
    }
}

#[test]
fn a_guide_that_rules_out_the_constraint_says_so() {
    let folder = Folder::new();
    folder.write("text", "a b c d\n".repeat(3));
    // One state per word, so that transitions are those between words.
    let train = "train hmm text --n-states 4 --n-clusters 4 --parameterization scalar --prior 0 \
                 --epochs 1 -o m.hmm -q";
    assert_eq!(folder.run(train).code, Some(0));
    let possible = run(&folder, &["m.hmm", "--must", "b c", "-n", "1"]);
    assert!(possible.stdout.starts_with("a b c d"), "{}{}", possible.stdout, possible.stderr);
    run(&folder, &["m.hmm", "--must", "b a"])
        .assert_refused("the guide gives the constraint probability zero");
    run(&folder, &["m.hmm", "--prefix", "c"])
        .assert_refused("the guide gives the word `c` probability zero");
}
