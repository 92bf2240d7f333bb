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

#[test]
fn a_record_that_cannot_be_written_is_refused_before_the_run() {
    let ran = corpora().run("reproduce lds-dynamics --data . --quick --record no/such/new.jsonl");
    ran.assert_refused("cannot write `no/such/new.jsonl`");
}
