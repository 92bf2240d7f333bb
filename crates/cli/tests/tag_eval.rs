//! `latens tag eval`, `tag compare` and the choices of `tag train` with the real program.

mod common;

use common::Folder;
use latens::corpus::embedded::{self, Split};
use serde_json::Value;
use std::collections::HashSet;
use std::fs;

fn with_tagged_corpus() -> Folder {
    let folder = Folder::new();
    for split in Split::ALL {
        folder.write(&format!("{}.conll", split.name()), embedded::tagged(split));
    }
    folder
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} in {value}"))
}

#[test]
fn evaluation_explains_types_confusions_and_unknown_words() {
    let folder = with_tagged_corpus();
    folder.json("tag train train.conll --column 3 --n-iterations 30 -o names.tagger");
    folder.json("tag train train.conll --column 2 --n-iterations 30 -o pos.tagger");
    let spans = folder.json("tag eval names.tagger test.conll");
    let sum = |key: &str| -> f64 {
        spans["types"].as_array().unwrap().iter().map(|found| number(found, key)).sum()
    };
    // Precision and recall of all spans follow from the counts of types.
    assert!((sum("correct") / sum("predicted") - number(&spans, "precision")).abs() < 1e-12);
    assert!((sum("correct") / sum("true") - number(&spans, "recall")).abs() < 1e-12);

    let tags = folder.json("tag eval pos.tagger test.conll");
    let types = tags["types"].as_array().unwrap();
    let n_true: f64 = types.iter().map(|found| number(found, "true")).sum();
    assert_eq!(n_true, number(&tags, "tokens"));
    let confusions = tags["confusions"].as_array().unwrap();
    let counts: Vec<f64> = confusions.iter().map(|found| number(found, "count")).collect();
    assert!(counts.is_sorted_by(|a, b| a >= b), "{counts:?}");
    let n_wrong = number(&tags, "tokens") * (1.0 - number(&tags, "accuracy"));
    assert!((counts.iter().sum::<f64>() - n_wrong).abs() < 1e-6);
    // Words of the training text are counted here, too.
    let (train, test) = (embedded::tagged(Split::Train), embedded::tagged(Split::Test));
    let first = |text: &str| -> Vec<String> {
        text.lines().filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect()
    };
    let seen: HashSet<String> = first(&train).into_iter().collect();
    let words = first(&test).into_iter();
    let n_oov = words.filter(|word| !seen.contains(word)).count();
    assert_eq!(tags["oov_tokens"], n_oov);
    assert!(number(&tags, "rare_tokens") >= n_oov as f64);

    let text = folder.run("tag eval pos.tagger test.conll --n-confusions 3").stdout;
    assert!(text.contains("that are not in the training text"), "{text}");
    assert!(text.contains("precision    recall        F1"), "{text}");
    let table = text.split("true       predicted").nth(1).unwrap_or_else(|| panic!("{text}"));
    assert_eq!(table.trim().lines().skip(1).count(), 3, "{text}");
    let text = folder.run("tag eval names.tagger test.conll").stdout;
    assert!(text.contains("spans with an OOV word") && text.contains("\nPER "), "{text}");
}

#[test]
fn spans_are_compared_by_a_paired_bootstrap() {
    let folder = with_tagged_corpus();
    folder.json("tag train train.conll --column 3 --n-iterations 40 -o good.tagger");
    folder.json("tag train train.conll --column 3 --n-iterations 1 -o bad.tagger");
    let compared = folder.json("tag compare good.tagger bad.tagger test.conll --n-samples 2000");
    for (name, tagger) in [("first_f1", "good"), ("second_f1", "bad")] {
        let scores = folder.json(&format!("tag eval {tagger}.tagger test.conll"));
        assert!((number(&compared, name) - number(&scores, "f1")).abs() < 1e-12, "{compared}");
    }
    let interval = compared["f1_difference_interval"].as_array().unwrap();
    let difference = number(&compared, "first_f1") - number(&compared, "second_f1");
    assert!(
        interval[0].as_f64().unwrap() < difference && difference < interval[1].as_f64().unwrap()
    );
    assert_eq!(compared["significant"], number(&compared, "f1_p_value") < 0.05);
    assert_eq!(compared["significant"], true, "{compared}");
    let ran = folder.run("tag compare good.tagger bad.tagger test.conll --n-samples 2000");
    assert!(ran.stdout.contains("(paired bootstrap): significant"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("p = 0.00"), "{}", ran.stdout);
    // The same seed gives the same samples, and equal taggers do not differ.
    let again =
        folder.json("tag compare good.tagger bad.tagger test.conll --n-samples 2000 --threads 1");
    assert_eq!(compared, again);
    let same = folder.run("tag compare good.tagger good.tagger test.conll --n-samples 200");
    assert_eq!(same.code, Some(1));
    assert!(same.stdout.contains("p = 1.00"), "{}", same.stdout);
}

#[test]
fn regularization_is_chosen_on_the_development_set() {
    let folder = with_tagged_corpus();
    let train = "tag train train.conll --column 2 --dev valid.conll --n-iterations 20 --patience 0";
    let ran = folder.run(&format!("{train} --l2 auto -o auto.tagger --json"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    let (l2, best) = (number(&result["metrics"], "l2"), number(&result["metrics"], "dev_accuracy"));
    // Each value is as good as it was alone, and the best one was kept.
    for other in [0.01, 0.03, 0.1, 0.3, 1.0, 3.0] {
        let one = folder.json(&format!("{train} --l2 {other} -o one.tagger"));
        let score = number(&one["metrics"], "dev_accuracy");
        assert!(score <= best, "{other}: {score} {best}");
        if other == l2 {
            assert_eq!(score, best);
            let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
            assert_eq!(read("one.tagger"), read("auto.tagger"));
        }
        let line = format!("--l2 {other} (");
        assert!(ran.stderr.contains(&line), "{}", ran.stderr);
    }
    assert!(!folder.names().iter().any(|name| name.contains("checkpoint")), "{:?}", folder.names());
    folder
        .run("tag train train.conll --column 2 --l2 auto -o x")
        .assert_refused("`--l2 auto` needs a development set");
    folder
        .run("tag train train.conll --column 2 --l2 auto --dev valid.conll --resume -o x")
        .assert_refused("cannot be resumed");
}

#[test]
fn training_stops_when_the_development_score_does_not_improve() {
    let folder = with_tagged_corpus();
    let train = "tag train train.conll --column 2 --dev valid.conll --n-iterations 200";
    let early = folder.json(&format!("{train} --patience 1 --log early.jsonl -o early.tagger"));
    let late = folder.json(&format!("{train} --patience 0 --log late.jsonl -o late.tagger"));
    let (early, late) = (&early["metrics"], &late["metrics"]);
    assert!(number(early, "iterations") < number(late, "iterations"), "{early} {late}");
    // The kept weights are those of the best evaluation in the log.
    for (log, metrics) in [("early.jsonl", early), ("late.jsonl", late)] {
        let log = fs::read_to_string(folder.path().join(log)).unwrap();
        let lines: Vec<Value> =
            log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let scores = lines.iter().filter(|line| !line["dev_score"].is_null());
        let best = scores.map(|line| number(line, "dev_score")).fold(0.0, f64::max);
        assert_eq!(number(metrics, "dev_accuracy"), best);
        let line =
            lines.iter().find(|line| line["iteration"] == metrics["best_iteration"]).unwrap();
        assert_eq!(number(line, "dev_score"), best);
    }
    let perceptron =
        "tag train train.conll --column 2 --dev valid.conll --optimizer perceptron --epochs 30";
    let found = folder.json(&format!("{perceptron} --patience 2 -o p.tagger"));
    assert!(number(&found["metrics"], "best_iteration") < 29.0, "{found}");
}

#[test]
fn the_column_of_the_words_is_refused() {
    let folder = with_tagged_corpus();
    let ran = folder.run("tag train train.conll --column 1 -o x");
    ran.assert_refused("`--column 1` is the column of the words");
    assert!(ran.stderr.contains("hint: columns are counted from 1"), "{}", ran.stderr);
    assert!(!folder.path().join("x").exists());
}
