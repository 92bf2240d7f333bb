//! Every relative link leads to a file, and every anchor to a heading.

use crate::markdown::{Part, anchors, parts, without_code};
use crate::{assert_none, documents, shown};
use std::path::Path;

/// The targets of links and pictures in a document.
fn targets(text: &str) -> Vec<String> {
    let prose = parts(text).into_iter().filter_map(|part| match part {
        Part::Prose(lines) => Some(without_code(&lines)),
        Part::Block { .. } => None,
    });
    prose.flatten().flat_map(|paragraph| targets_of(&paragraph)).collect()
}

fn targets_of(paragraph: &str) -> Vec<String> {
    let ends = paragraph.split("](").skip(1);
    ends.filter_map(|rest| rest.split([')', ' ']).next()).map(str::to_owned).collect()
}

/// Why a link leads nowhere.
fn broken(document: &Path, text: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) =
        target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let path = document.parent().expect("a document is in a folder").join(file);
    if !file.is_empty() && !path.exists() {
        return Some(format!("`{file}` does not exist"));
    }
    let anchor = anchor?;
    let found = if file.is_empty() {
        anchors(text)
    } else {
        anchors(&std::fs::read_to_string(&path).unwrap_or_default())
    };
    (!found.iter().any(|one| one == anchor))
        .then(|| format!("there is no heading `#{anchor}` in `{file}`"))
}

#[test]
fn every_relative_link_and_anchor_exists() {
    let mut complaints = Vec::new();
    for (path, text) in documents() {
        let why = targets(&text).into_iter().filter_map(|target| broken(&path, &text, &target));
        complaints.extend(why.map(|why| format!("{}: {why}", shown(&path))));
    }
    assert_none(&complaints);
}

#[test]
fn links_in_code_are_not_links() {
    let text =
        "See [a](b.md) and ![c](d.svg \"title\"), not `[e](f.md)`.\n```text\n[g](h.md)\n```\n";
    assert_eq!(targets(text), ["b.md", "d.svg"]);
}
