//! The structure of the workspace, as ARCHITECTURE.md describes it: who may depend on whom, and no circles.

mod architecture;
mod modules;

use architecture::Table;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders under `crates/` whose package does not carry the prefix `latens-`.
const UNPREFIXED: [&str; 2] = ["latens", "xtask"];

/// Crates that may print: the front ends and the developers' tools.
const FRONT_ENDS: [&str; 4] = ["cli", "explorer", "python", "xtask"];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn manifests() -> BTreeMap<String, toml::Table> {
    let folders = fs::read_dir(crates()).unwrap().map(|entry| entry.unwrap().path());
    let manifests = folders.filter(|folder| folder.join("Cargo.toml").exists()).map(|folder| {
        let text = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        (folder.file_name().unwrap().to_str().unwrap().to_owned(), text.parse().unwrap())
    });
    manifests.collect()
}

/// The crates of ours that a table of dependencies names, by their folders.
fn ours(manifest: &toml::Table, table: &str) -> Vec<String> {
    let names = manifest.get(table).and_then(|table| table.as_table()).into_iter().flatten();
    let ours = names.filter_map(|(name, _)| match name.as_str() {
        "latens" => Some("latens".to_owned()),
        name => name.strip_prefix("latens-").map(str::to_owned),
    });
    ours.collect()
}

#[test]
fn crates_depend_only_on_what_the_table_of_the_architecture_allows() {
    let text = fs::read_to_string(crates().join("../ARCHITECTURE.md")).unwrap();
    let table = Table::parse(&text);
    let manifests = manifests();
    for name in table.names() {
        assert!(manifests.contains_key(name), "ARCHITECTURE.md lists `{name}`, which is gone");
    }
    for (name, manifest) in &manifests {
        for dependency in ours(manifest, "dependencies") {
            let allowed = table.allows(name, &dependency);
            assert!(allowed, "ARCHITECTURE.md does not let `{name}` depend on `{dependency}`");
        }
        // Tests may also use the kit for tests, which nothing else may.
        for dependency in ours(manifest, "dev-dependencies") {
            let allowed = dependency == "testkit" || table.allows(name, &dependency);
            assert!(allowed, "the tests of `{name}` must not depend on `{dependency}`");
        }
    }
}

#[test]
fn packages_are_named_after_their_folders() {
    for (name, manifest) in manifests() {
        let is_bare = UNPREFIXED.contains(&name.as_str());
        let expected = if is_bare { name } else { format!("latens-{name}") };
        assert_eq!(manifest["package"]["name"].as_str(), Some(expected.as_str()));
    }
}

#[test]
fn no_crate_has_a_circle_of_modules() {
    let circles: Vec<String> = manifests()
        .into_keys()
        .flat_map(|name| {
            let circles = modules::circles(&crates().join(&name).join("src"));
            circles.into_iter().map(move |files| format!("{name}: {}", files.join(", ")))
        })
        .collect();
    assert!(circles.is_empty(), "circles of modules:\n{}", circles.join("\n"));
}

#[test]
fn no_folders_of_a_crate_use_each_other_in_a_circle() {
    let circles: Vec<String> = manifests()
        .into_keys()
        .flat_map(|name| {
            let circles = modules::folder_circles(&crates().join(&name).join("src"));
            circles.into_iter().map(move |folders| format!("{name}: {}", folders.join(", ")))
        })
        .collect();
    assert!(circles.is_empty(), "circles of folders:\n{}", circles.join("\n"));
}

#[test]
fn every_kernel_file_lies_beside_the_module_that_launches_it() {
    let kernels = files(&crates().join("cuda/src"), "cu");
    assert!(!kernels.is_empty());
    for kernel in kernels {
        assert!(kernel.with_extension("rs").exists(), "{} has no module", kernel.display());
    }
}

#[test]
fn no_folder_has_more_than_twelve_modules_side_by_side() {
    const MAX: usize = 12;
    let mut crowded = Vec::new();
    for name in manifests().into_keys() {
        let mut counts: BTreeMap<PathBuf, usize> = BTreeMap::new();
        for file in rust_files(&crates().join(&name).join("src")) {
            // `lib.rs`, `main.rs` and `mod.rs` are the folder itself. A `.cu` file belongs to the `.rs` file of its name.
            if !["lib.rs", "main.rs", "mod.rs"].iter().any(|own| file.ends_with(own)) {
                *counts.entry(file.parent().unwrap().to_owned()).or_default() += 1;
            }
        }
        crowded.extend(counts.into_iter().filter(|(_, n)| *n > MAX));
    }
    assert!(crowded.is_empty(), "folders that need folders: {crowded:?}");
}

#[test]
fn only_front_ends_print() {
    for name in manifests().into_keys().filter(|name| !FRONT_ENDS.contains(&name.as_str())) {
        for file in rust_files(&crates().join(&name).join("src")) {
            let text = fs::read_to_string(&file).unwrap();
            let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let prints = lines
                .filter(|line| ["println!(", "print!(", "dbg!("].iter().any(|p| line.contains(p)));
            assert_eq!(prints.count(), 0, "{} prints", file.display());
        }
    }
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    files(folder, "rs")
}

/// All files under a folder with this extension.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let inside = |path: PathBuf| if path.is_dir() { files(&path, extension) } else { vec![path] };
    let files = entries.flat_map(inside);
    files.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}
