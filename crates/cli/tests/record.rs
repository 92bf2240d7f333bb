//! `reproduce --record`: figures as records, beside the result that it prints anyway.

mod common;

use common::Folder;
use latens::corpus::embedded::{self, Split};
use serde_json::Value;
use std::fs;

/// A folder with the embedded corpus in the place of the Penn Treebank.
fn corpora() -> Folder {
    let folder = Folder::new();
    fs::create_dir(folder.path().join("ptb-lm")).unwrap();
    for split in Split::ALL {
        folder.write(&format!("ptb-lm/ptb.{}.txt", split.name()), embedded::text(split));
    }
    folder
}

#[test]
fn each_run_appends_one_record_per_figure() {
    let folder = corpora();
    let args = "reproduce lds-dynamics --data . --quick --record new.jsonl";
    let result = folder.json(args);
    assert_eq!(result["experiment"], "lds-dynamics");
    let rows = result["rows"].as_array().unwrap();
    let read = || fs::read_to_string(folder.path().join("new.jsonl")).unwrap();
    let records: Vec<Value> =
        read().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!rows.is_empty() && records.len() == rows.len(), "{} records", records.len());
    for (record, row) in records.iter().zip(rows) {
        assert_eq!(record["model"], row["row"]);
        assert_eq!(record["data"], "Penn Treebank");
        let (value, ours) = (record["value"].as_f64().unwrap(), row["ours"].as_f64().unwrap());
        assert!((value - ours).abs() <= 1e-5 * ours.abs(), "{value} {ours}");
        let command = record["command"].as_str().unwrap();
        assert!(
            command.starts_with("latens reproduce lds-dynamics --data DIR --quick"),
            "{command}"
        );
        assert!(!record["machine"].as_str().unwrap().is_empty());
        // The test's folder is not a checkout of this project.
        assert!(record["commit"].is_null() && record["spread"].is_null());
    }
    folder.json(args);
    assert_eq!(read().lines().count(), 2 * rows.len());
}

/// Sentences with a tag per word, which depends on its length.
fn tagged(split: Split, n: usize) -> String {
    let mut text = String::new();
    for line in embedded::text(split).lines().take(n) {
        for word in line.split_whitespace() {
            text += &format!("{word} {}\n", ["EVEN", "ODD"][word.chars().count() % 2]);
        }
        text.push('\n');
    }
    text
}

#[test]
fn figures_over_seeds_are_means_with_a_range() {
    let folder = Folder::new();
    for name in ["ptb-pos", "bio-pos", "unlabeled-news", "bio-unlabeled"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    folder.write("ptb-pos/wsj.train.txt", tagged(Split::Train, 40));
    folder.write("bio-pos/genia.dev.txt", tagged(Split::Valid, 20));
    folder.write("bio-pos/genia.test.txt", tagged(Split::Test, 20));
    let text = embedded::text(Split::Train);
    let lines: Vec<_> = text.lines().take(120).collect();
    let parts = ["unlabeled-news/reuters21578", "bio-unlabeled/medline", "bio-unlabeled/trials"];
    for (part, lines) in parts.into_iter().zip(lines.chunks(40)) {
        folder.write(&format!("{part}.sents.txt"), lines.join("\n"));
    }
    let result = folder.json("reproduce fhmm-tuned-pos --data . --quick --record new.jsonl");
    let rows = result["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 8 * 3);
    let records = fs::read_to_string(folder.path().join("new.jsonl")).unwrap();
    let records: Vec<Value> =
        records.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records.len(), rows.len());
    for (row, record) in rows.iter().zip(&records) {
        let name = row["row"].as_str().unwrap();
        if name == "BASELINE" || name.starts_with("BROWN") {
            assert!(row["of_seeds"].is_null() && record["spread"].is_null(), "{name}");
            continue;
        }
        let of_seeds = row["of_seeds"].as_array().unwrap();
        assert_eq!(of_seeds.len(), 2);
        let [first, second] = [0, 1].map(|i| of_seeds[i].as_f64().unwrap());
        assert!((row["ours"].as_f64().unwrap() - (first + second) / 2.0).abs() < 1e-9, "{row}");
        let spread = &record["spread"];
        assert_eq!((&spread["over"], &spread["n"]), (&"seeds".into(), &2.into()));
        let close = |value: &Value, to: f64| (value.as_f64().unwrap() - to).abs() < 1e-3;
        assert!(
            close(&spread["min"], first.min(second)) && close(&spread["max"], first.max(second))
        );
    }
    let differ = |row: &Value| row["of_seeds"].as_array().is_some_and(|seeds| seeds[0] != seeds[1]);
    assert!(rows.iter().any(differ), "seeds give different representations");
}

#[test]
fn every_experiment_names_its_files() {
    let data =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/data.md")).unwrap();
    for experiment in Folder::new().json("reproduce --list")["experiments"].as_array().unwrap() {
        let name = experiment["name"].as_str().unwrap();
        assert!(data.contains(&format!("`{name}`")), "`{name}` is not in docs/data.md");
    }
}

#[test]
fn a_record_that_cannot_be_written_is_refused_before_the_run() {
    let ran = corpora().run("reproduce lds-dynamics --data . --quick --record no/such/new.jsonl");
    ran.assert_refused("cannot write `no/such/new.jsonl`");
}
