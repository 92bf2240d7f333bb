//! Commands in `results/*.jsonl` read only files that docs/data.md describes or that their own earlier lines write.

use crate::commands::with_redirections;
use crate::{assert_none, files_under, root, shown};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

/// The files that a command reads and does not make itself.
fn inputs(command: &str) -> Vec<String> {
    let (mut made, mut read) = (BTreeSet::new(), Vec::new());
    for words in command.lines().flat_map(with_redirections) {
        let mut new = Vec::new();
        for (i, word) in words.iter().enumerate() {
            let before = i.checked_sub(1).map(|i| words[i].as_str());
            match file_of(word) {
                Some(file) if matches!(before, Some("-o" | ">")) => new.push(file.to_owned()),
                Some(file) if !is_made(file, &made) => read.push(file.to_owned()),
                _ => {}
            }
            // `-o` may name a folder.
            if before == Some("-o") {
                new.push(format!("{word}/"));
            }
        }
        made.extend(new);
    }
    read
}

/// Whether a command wrote the file or its folder.
fn is_made(file: &str, made: &BTreeSet<String>) -> bool {
    let folder = file.rfind('/').map(|end| &file[..=end]);
    made.contains(file) || folder.is_some_and(|folder| made.contains(folder))
}

/// The name of a file in a word like `m.hmm`, `m.hmm:state` or `TEXT=a.txt`: it has an extension that starts with a letter.
fn file_of(word: &str) -> Option<&str> {
    let (_, word) = word.rsplit_once('=').unwrap_or(("", word));
    let file = word.split(':').next()?;
    let (stem, extension) = file.rsplit_once('.')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || "./-_".contains(c);
    let is_file = file.chars().all(is_name)
        && extension.starts_with(|c: char| c.is_ascii_alphabetic())
        && extension.chars().all(|c| c.is_ascii_alphanumeric())
        && !stem.is_empty();
    is_file.then_some(file)
}

/// The words of docs/data.md that may be names of files.
fn described() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("docs/data.md")).expect("the page is UTF-8");
    let is_name = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    text.split(|c| !is_name(c)).map(str::to_owned).collect()
}

#[test]
fn every_file_that_a_figure_needs_is_described() {
    let (root, described) = (root(), described());
    let mut complaints = BTreeSet::new();
    for path in files_under(&root.join("results"), "jsonl") {
        for line in fs::read_to_string(&path).expect("records are UTF-8").lines() {
            let record: Value = serde_json::from_str(line).expect("a record is JSON");
            let id = record["id"].as_str().expect("a record has an id");
            let files = inputs(record["command"].as_str().unwrap_or_default());
            let unknown = files.into_iter().filter(|file| {
                let name = file.rsplit('/').next().unwrap_or(file);
                !described.contains(name) && !root.join(file).exists()
            });
            let complaint = |file| {
                format!("{}: `{id}` reads `{file}`, which is not in docs/data.md", shown(&path))
            };
            complaints.extend(unknown.map(complaint));
        }
    }
    assert_none(&complaints.into_iter().collect::<Vec<_>>());
}

#[test]
fn files_made_by_a_command_are_not_its_inputs() {
    let command = "head -5 a.txt > b.txt\nX=c.txt latens train hmm b.txt -o m.hmm\n\
                   latens tag train d.conll --encoder m.hmm:state --scale 0.5 -o m.tagger\n\
                   latens demo -o demo\nlatens perplexity n.ngram demo/test.txt | grep 'e f.txt'";
    assert_eq!(inputs(command), ["a.txt", "c.txt", "d.conll", "n.ngram"]);
}
