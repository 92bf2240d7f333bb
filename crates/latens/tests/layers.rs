//! Who may depend on whom, as ARCHITECTURE.md says.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// What a crate may depend on, of ours. `model-*` stands for every model crate.
const ALLOWED: &[(&str, &[&str])] = &[
    ("math", &[]),
    ("store", &[]),
    ("corpus", &["store"]),
    ("cuda", &[]),
    ("counts", &["math", "corpus", "store"]),
    ("model", &["math", "corpus", "store"]),
    ("nn", &["math"]),
    ("model-*", &["math", "nn", "corpus", "store", "counts", "model", "cuda"]),
    ("tasks", &["math", "nn", "corpus", "store", "model"]),
    ("latens", &["math", "nn", "corpus", "store", "counts", "model", "model-*", "tasks", "cuda"]),
    ("experiments", &["latens"]),
    ("cli", &["latens", "experiments"]),
    ("python", &["latens"]),
    ("explorer", &["latens"]),
    ("testkit", &["math", "corpus", "store", "model"]),
];

fn manifests() -> BTreeMap<String, toml::Table> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folders = fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path());
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

fn pattern(name: &str) -> &str {
    if name.starts_with("model-") { "model-*" } else { name }
}

#[test]
fn crates_depend_only_on_what_the_table_allows() {
    for (name, manifest) in manifests() {
        let rule = ALLOWED.iter().find(|(folder, _)| *folder == pattern(&name));
        let (_, allowed) = rule.unwrap_or_else(|| panic!("`{name}` is not in the table"));
        for dependency in ours(&manifest, "dependencies") {
            assert!(
                allowed.contains(&pattern(&dependency)),
                "`{name}` must not know `{dependency}`"
            );
        }
        // Tests may also use the kit for tests, which nothing else may.
        for dependency in ours(&manifest, "dev-dependencies") {
            let fine = dependency == "testkit" || allowed.contains(&pattern(&dependency));
            assert!(fine, "the tests of `{name}` must not know `{dependency}`");
        }
    }
}

#[test]
fn packages_are_named_after_their_folders() {
    for (name, manifest) in manifests() {
        let expected = if name == "latens" { name } else { format!("latens-{name}") };
        assert_eq!(manifest["package"]["name"].as_str(), Some(expected.as_str()));
    }
}

#[test]
fn only_front_ends_print() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for name in manifests().into_keys().filter(|name| !["cli", "explorer"].contains(&name.as_str()))
    {
        for file in rust_files(&crates.join(&name).join("src")) {
            let text = fs::read_to_string(&file).unwrap();
            let prints = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let prints = prints
                .filter(|line| ["println!(", "print!(", "dbg!("].iter().any(|p| line.contains(p)));
            assert_eq!(prints.count(), 0, "{} prints", file.display());
        }
    }
}

fn rust_files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}
