//! Every guide names a program in Rust that CI runs, and every such program belongs to a guide or to docs/scale.md.

use crate::{assert_none, files_under, root, shown};
use std::fs;

/// The folders whose programs `.ci/run` runs.
const FOLDERS: [&str; 2] = ["crates/latens/examples", "crates/explorer/examples"];

/// The links to examples in a guide, as paths from the root.
fn linked(guide: &str) -> Vec<String> {
    let ends = guide.split("](../../").skip(1).filter_map(|rest| rest.split(')').next());
    ends.filter(|path| FOLDERS.iter().any(|folder| path.starts_with(folder)))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_guide_names_an_example_and_every_example_is_named() {
    let root = root();
    let examples = FOLDERS.iter().flat_map(|folder| files_under(&root.join(folder), "rs"));
    let examples: Vec<String> = examples.map(|path| shown(&path)).collect();
    let (mut complaints, mut named) = (Vec::new(), Vec::new());
    for guide in files_under(&root.join("docs/guides"), "md") {
        let links = linked(&fs::read_to_string(&guide).expect("the guide is UTF-8"));
        if !links.iter().any(|link| examples.contains(link)) {
            complaints.push(format!("{} names no example", shown(&guide)));
        }
        named.extend(links);
    }
    let scale = fs::read_to_string(root.join("docs/scale.md")).expect("the page is UTF-8");
    for example in &examples {
        let name = example.rsplit('/').next().expect("a file").trim_end_matches(".rs");
        if !named.contains(example) && !scale.contains(&format!("--example {name}`")) {
            complaints.push(format!("no guide names {example}"));
        }
    }
    assert_none(&complaints);
}

#[test]
fn examples_of_all_crates_have_different_names() {
    // They are built into one folder.
    let files = files_under(&root().join("crates"), "rs");
    let examples =
        files.iter().filter(|path| path.parent().is_some_and(|p| p.ends_with("examples")));
    let mut names: Vec<_> = examples.filter_map(|path| path.file_name()).collect();
    let n_examples = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), n_examples, "{names:?}");
}

#[test]
fn ci_runs_the_examples_of_all_folders() {
    let script = fs::read_to_string(root().join(".ci/run")).expect("the script is UTF-8");
    for folder in FOLDERS {
        assert!(script.contains(&format!("{folder}/*.rs")), ".ci/run does not run {folder}");
    }
}
