//! Taggers with the real program, on the tagged part of the embedded corpus.

mod common;

use common::Folder;
use latens::corpus::embedded::{self, Split};
use serde_json::Value;
use std::fs;

/// A small model that learns in a second.
const SMALL: &str = "--n-states 32 --n-clusters 8 --dim 16 --epochs 6 --batch-tokens 200";

fn with_tagged_corpus() -> Folder {
    let folder = Folder::new();
    for split in Split::ALL {
        folder.write(&format!("{}.conll", split.name()), embedded::tagged(split));
    }
    folder
}

fn accuracy(scores: &Value) -> f64 {
    scores["accuracy"].as_f64().unwrap()
}

#[test]
fn part_of_speech_taggers_are_trained_evaluated_and_run() {
    let folder = with_tagged_corpus();
    let train = "train hmm train.conll --valid valid.conll --tags 2 --digits zero --min-count 2";
    let trained = folder.json(&format!("{train} {SMALL} -o m.hmm"));
    assert_eq!(trained["model"], "hmm");
    assert_eq!(folder.json("inspect m.hmm")["training"]["tag_column"], 2);

    let scores = folder.json("tag eval m.hmm test.conll");
    let mut keys: Vec<&str> = scores.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    let expected = [
        "accuracy",
        "confusions",
        "f1",
        "oov_accuracy",
        "oov_f1",
        "oov_tokens",
        "precision",
        "rare_accuracy",
        "rare_f1",
        "rare_tokens",
        "recall",
        "tokens",
        "types",
    ];
    assert_eq!(keys, expected);
    // Nouns, the most frequent tag, are a fifth of all words.
    assert!(accuracy(&scores) > 0.5, "{scores}");
    assert!(scores["oov_accuracy"].as_f64().unwrap() < accuracy(&scores), "{scores}");
    assert!(scores["f1"].is_null());
    assert_eq!(scores, folder.json("tag eval m.hmm test.conll --column 2"));
    assert!(folder.run("tag eval m.hmm test.conll").stdout.starts_with("accuracy "));

    // The column that is written gives the same accuracy.
    let written = folder.json("tag run m.hmm test.conll -o tagged.conll");
    assert_eq!(written["tokens"], scores["tokens"]);
    let text = fs::read_to_string(folder.path().join("tagged.conll")).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    let rows: Vec<&Vec<&str>> = rows.iter().filter(|row| row.len() > 1).collect();
    let n_right = rows.iter().filter(|row| row[1] == row[3]).count();
    assert_eq!(n_right as f64 / rows.len() as f64, accuracy(&scores));
    assert_eq!(folder.run("tag run m.hmm test.conll").stdout, text);
}

#[test]
fn plain_text_gets_a_column_of_tags() {
    let folder = with_tagged_corpus();
    folder.json(&format!("train hmm train.conll --tags 2 --min-count 2 {SMALL} -o m.hmm"));
    folder.write("a.txt", "The dog barks .\n\nIt is zyzzogeton .\n");
    let tagged = folder.run("tag run m.hmm a.txt").stdout;
    let words: Vec<Option<&str>> = tagged.lines().map(|line| line.split('\t').next()).collect();
    let words: Vec<&str> = words.into_iter().flatten().collect();
    assert_eq!(words, ["The", "dog", "barks", ".", "", "It", "is", "zyzzogeton", ".", ""]);
    let result = folder.json("tag run m.hmm a.txt");
    assert_eq!(result["sentences"].as_array().unwrap().len(), 2);
    assert_eq!(result["sentences"][0]["words"][1], "dog");
    assert_eq!(result["sentences"][1]["tags"].as_array().unwrap().len(), 4);
}

#[test]
fn names_are_evaluated_as_spans() {
    let folder = with_tagged_corpus();
    folder.json(&format!("train hmm train.conll --tags 3 --min-count 2 {SMALL} -o m.hmm"));
    let scores = folder.json("tag eval m.hmm train.conll");
    for name in ["precision", "recall", "f1", "rare_f1"] {
        assert!((0.0..=1.0).contains(&scores[name].as_f64().unwrap()), "{name}: {scores}");
    }
    // There are no words in the training text that were not seen in training.
    assert!(scores["oov_accuracy"].is_null() && scores["oov_f1"].is_null());
}

#[test]
fn unknown_words_are_tagged_by_their_letters() {
    let folder = with_tagged_corpus();
    let size =
        "--n-states 64 --n-clusters 4 --dim 16 --epochs 8 --batch-tokens 500 --learning-rate 0.03";
    let oov_accuracy = |flags: &str| {
        folder.json(&format!("train hmm train.conll --tags 2 {size} {flags} -o m.hmm"));
        let scores = folder.json("tag eval m.hmm test.conll");
        scores["oov_accuracy"].as_f64().unwrap()
    };
    let (words, letters) = (oov_accuracy("--min-count 2"), oov_accuracy("--word-vectors chars"));
    assert!(letters > words + 0.05, "{letters} {words}");
    // Letters that no word has are left out.
    folder.write("a.conll", "Qwertying X\n\u{20ac}\u{20ac} X\n");
    assert_eq!(folder.json("tag eval m.hmm a.conll")["tokens"], 2);
    let scored = folder.json("perplexity m.hmm test.conll");
    assert!(scored["perplexity"].as_f64().unwrap() < 2000.0, "{scored}");
}

#[test]
fn untaggable_text_and_missing_columns_are_rejected() {
    let folder = with_tagged_corpus();
    folder.write("plain.txt", "some words\n");
    folder.write("short.conll", "a X Y\n\nb X\n");
    let train = |args: &str| {
        let ran = folder.run(&format!("train hmm {args} {SMALL} -o m.hmm"));
        assert!(ran.code == Some(0) || !folder.path().join("m.hmm").exists());
        ran
    };
    train("plain.txt --tags 2").assert_refused("a sentence without columns");
    let ran = train("train.conll --tags 4");
    ran.assert_refused("cannot train on the tags of column 4");
    assert!(ran.stderr.contains("there is no column 4: the word `"), "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: columns are counted from 1"), "{}", ran.stderr);
    train("short.conll --tags 3").assert_refused("the word `b` in sentence 2 has 2");
    train("- --format conll --tags 2").assert_refused("`--tags` reads the text twice");
    assert_eq!(train("train.conll --tags 0").code, Some(2));

    let ran = train("train.conll --tags 2 --min-count 1");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: `--min-count 2`"), "{}", ran.stderr);
    let ran = folder.run("tag eval m.hmm test.conll");
    ran.assert_refused("and the training text had no unknown words");
    assert!(ran.stderr.contains("hint: train the tagger with `--min-count 2`"), "{}", ran.stderr);
    folder.write("unknown.txt", "a zyzzogeton\n");
    folder.run("tag run m.hmm unknown.txt").assert_refused("the word `zyzzogeton` is unknown");
    folder.run("tag eval m.hmm train.conll --column 9").assert_refused("there is no column 9");
    folder
        .run("tag eval m.hmm plain.txt --format lines")
        .assert_refused("a sentence without columns");
    folder.run("tag run m.hmm train.conll -o train.conll").assert_refused("both input and output");

    folder.json(&format!("train hmm train.conll {SMALL} -o words.hmm"));
    let ran = folder.run("tag eval words.hmm test.conll");
    ran.assert_refused("`words.hmm` is a hidden Markov model, which was trained without tags");
    assert!(ran.stderr.contains("hint: train a tagger"), "{}", ran.stderr);
    folder.run("reproduce hmm-tagging --data .").assert_refused("the folder `ptb-pos`");
    folder.json("train ngram plain.txt -o m.ngram");
    folder.run("tag run m.ngram plain.txt").assert_refused("trained without tags");
}
