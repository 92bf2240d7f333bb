//! Documents that cannot go stale: commands parse, their input files are described, links lead somewhere, and the
//! language is plain.

mod commands;
mod data;
mod examples;
mod language;
mod links;
mod markdown;

use std::path::{Path, PathBuf};

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the repository exists")
}

/// All files under a folder with this extension, in the order of their paths.
fn files_under(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the folder is readable") {
            let path = entry.expect("the entry is readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// The Markdown files that users read, with their contents.
fn documents() -> Vec<(PathBuf, String)> {
    let root = root();
    let mut files: Vec<PathBuf> = [
        "README.md",
        "CONTRIBUTING.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "SECURITY.md",
        "fuzz/README.md",
    ]
    .map(|name| root.join(name))
    .into();
    files.extend(files_under(&root.join("docs"), "md"));
    files.extend(files_under(&root.join("crates"), "md"));
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("the document is UTF-8");
        (path, text)
    };
    files.into_iter().map(read).collect()
}

/// A path as messages show it.
fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// Fails with all complaints at once, so that one run is enough to mend them.
fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}
