//! What users read has none of the phrases that we replaced by the words of the field, and says "per" in rates.

use crate::{assert_none, documents, files_under, root, shown};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Phrases with a better word, in lower case.
const PHRASES: &[&str] = &[
    "one file a model",
    "stands between blanks",
    "stand between blanks",
    "where random choices begin",
    "all letters small",
    "in small letters",
    "how far the first steps go",
    "gone through",
    "goes through",
    "goes over",
    "told from",
    "is told of",
    "share of states left out",
    "own alpha",
    "one in all",
    "know no vectors",
    "says no format",
    "from no sentence",
    "the states of a word are none",
    "probabilities are none",
    "its weights cannot be",
    "loss is lost",
    "stays none",
    "is no number",
    "left out of each mini-batch",
    "spoke for",
    "foretell",
    "foretold",
    "make up text",
    "made up",
    "probabilities are made of",
    "probabilities of weights",
    "come to its end",
    "learned by heart",
    "to and fro ",
    "unless told otherwise",
];

/// What a rate counts: "*tokens* a second".
const COUNTED: &[&str] = &[
    "byte",
    "bytes",
    "column",
    "columns",
    "count",
    "counts",
    "line",
    "lines",
    "minute",
    "minutes",
    "multiplication",
    "multiplications",
    "nat",
    "nats",
    "number",
    "numbers",
    "operation",
    "operations",
    "row",
    "rows",
    "second",
    "seconds",
    "states",
    "steps",
    "tokens",
    "vectors",
    "weights",
    "words",
];

/// What a rate is relative to: "tokens a *second*".
const PER: &[&str] = &[
    "bigram",
    "cluster",
    "core",
    "dimension",
    "document",
    "entry",
    "epoch",
    "hour",
    "iteration",
    "layer",
    "line",
    "minute",
    "n-gram",
    "number",
    "pair",
    "row",
    "second",
    "sentence",
    "state",
    "step",
    "sweep",
    "thread",
    "token",
    "topic",
    "weight",
    "word",
];

/// The words of a file in lower case, without comment markers and line ends. Punctuation stays where it is: it separates
/// the sentences "… 20 lines. A word …".
fn words(path: &Path, text: &str) -> Vec<String> {
    let is_rust = path.extension().is_some_and(|extension| extension == "rs");
    let line = |line: &str| {
        let line = line.trim();
        if !is_rust {
            return line.to_owned();
        }
        line.trim_start_matches(['/', '!']).trim_end_matches('\\').to_owned()
    };
    let text = text.lines().map(line).collect::<Vec<_>>().join(" ").to_lowercase();
    text.split_whitespace()
        .map(|word| word.trim_start_matches(['(', '"', '`', '*']).to_owned())
        .collect()
}

/// The phrases and rates in some words.
fn found(words: &[String]) -> Vec<String> {
    let text = words.join(" ");
    let mut found: Vec<String> = PHRASES
        .iter()
        .filter(|phrase| text.contains(**phrase))
        .map(|phrase| (*phrase).to_owned())
        .collect();
    for three in words.windows(3) {
        let [counted, article, per] = three else { unreachable!("windows of three") };
        let per = per.trim_end_matches(|c: char| !c.is_alphanumeric());
        let is_rate = COUNTED.contains(&counted.as_str()) && PER.contains(&per);
        if is_rate && matches!(article.as_str(), "a" | "an") {
            found.push(three.join(" "));
        }
    }
    found
}

/// Documents except the log of superseded results, notebooks, the sources of all crates, whose comments are help texts and
/// documentation, all Python sources, and the texts of the explorer.
fn what_users_read() -> Vec<(PathBuf, String)> {
    let is_log = |path: &Path| path.starts_with(root().join("docs/results/log"));
    let mut files: Vec<(PathBuf, String)> =
        documents().into_iter().filter(|(path, _)| !is_log(path)).collect();
    let crates = root().join("crates");
    let mut sources = files_under(&crates, "rs");
    sources.retain(|path| path.components().any(|part| part.as_os_str() == "src"));
    for extension in ["py", "pyi"] {
        sources.extend(files_under(&root().join("python"), extension));
        sources.extend(files_under(&crates, extension));
    }
    sources.push(crates.join("explorer/web/texts.js"));
    let read = |path: &Path| std::fs::read_to_string(path).expect("the source is UTF-8");
    files.extend(sources.into_iter().map(|path| (path.clone(), read(&path))));
    let notebooks = files_under(&root().join("docs/notebooks"), "ipynb");
    files.extend(notebooks.into_iter().map(|path| (path.clone(), cells(&read(&path)))));
    files
}

/// The text and code of a notebook, without its outputs.
fn cells(notebook: &str) -> String {
    let notebook: Value = serde_json::from_str(notebook).expect("a notebook is JSON");
    let cells = notebook["cells"].as_array().expect("a notebook has cells");
    let lines = cells.iter().flat_map(|cell| cell["source"].as_array().expect("a list of lines"));
    let ends = |line: &Value| format!("{}\n", line.as_str().expect("a line").trim_end());
    lines.map(ends).collect()
}

#[test]
fn no_document_or_help_text_has_a_replaced_phrase() {
    let mut complaints = Vec::new();
    for (path, text) in what_users_read() {
        complaints.extend(
            found(&words(&path, &text)).into_iter().map(|what| format!("{}: {what}", shown(&path))),
        );
    }
    assert_none(&complaints);
}

#[test]
fn rates_are_found_across_lines_and_comments() {
    let source = "/// It samples a million tokens a\n/// second, with one line a word.\n// For lines. A word is short.\n";
    assert_eq!(found(&words(Path::new("x.rs"), source)), ["tokens a second,", "line a word."]);
    assert_eq!(found(&words(Path::new("x.md"), "It goes\nover all words.")), ["goes over"]);
}

#[test]
fn the_cells_of_a_notebook_are_read() {
    let notebook = r#"{"cells": [
        {"cell_type": "markdown", "source": ["It goes\n", "over all words."]},
        {"cell_type": "code", "source": ["print('x')"], "outputs": [{"text": ["told from\n"]}]}
    ]}"#;
    assert_eq!(found(&words(Path::new("x.ipynb"), &cells(notebook))), ["goes over"]);
}
