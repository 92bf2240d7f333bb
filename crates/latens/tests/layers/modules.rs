//! Which file of a crate uses which other one, read off its `use` declarations and paths.
//!
//! This reads text, not syntax trees: it knows `use` trees, paths that begin with `crate`, `self`, `super` or a child
//! module, and re-exports, which count for the file that defines the item. Code for tests is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A module: the names from the crate's root down to it.
type Module = Vec<String>;

struct Crate {
    files: BTreeMap<Module, PathBuf>,
    /// For each module, which full path each name that it imports or re-exports stands for.
    imports: BTreeMap<Module, BTreeMap<String, Vec<String>>>,
    /// For each module, all full paths that it mentions.
    mentioned: BTreeMap<Module, BTreeSet<Vec<String>>>,
}

/// The circles of files under a source folder; each is a list of files.
pub(crate) fn circles(source: &Path) -> Vec<Vec<String>> {
    let parsed = Crate::read(source);
    let edges = parsed.files.keys().map(|module| (module, parsed.used_by(module))).collect();
    let name =
        |module: &Module| parsed.files[module].strip_prefix(source).unwrap().display().to_string();
    circles_of(&edges).into_iter().map(|circle| circle.into_iter().map(name).collect()).collect()
}

/// The circles of modules that lie side by side, where a folder is one module with all that it contains.
///
/// Its files may be free of circles, and the folder still both use a neighbor and be used by it.
pub(crate) fn folder_circles(source: &Path) -> Vec<Vec<String>> {
    let parsed = Crate::read(source);
    // For each parent, which of its children use which others.
    let mut uses: BTreeMap<Module, BTreeMap<Module, BTreeSet<Module>>> = BTreeMap::new();
    for module in parsed.files.keys() {
        for used in parsed.used_by(module) {
            let n_shared = module.iter().zip(used).take_while(|(a, b)| a == b).count();
            // One of them contains the other.
            if n_shared == module.len() || n_shared == used.len() {
                continue;
            }
            let [from, to] = [module, used].map(|module| module[..=n_shared].to_vec());
            let children = uses.entry(module[..n_shared].to_vec()).or_default();
            children.entry(to.clone()).or_default();
            children.entry(from).or_default().insert(to);
        }
    }
    let circles = uses.values().flat_map(|children| {
        let edges = children.iter().map(|(from, to)| (from, to.iter().collect())).collect();
        circles_of(&edges)
    });
    circles.map(|circle| circle.into_iter().map(|module| module.join("/")).collect()).collect()
}

/// The groups of nodes that reach each other.
fn circles_of<'a>(edges: &BTreeMap<&'a Module, BTreeSet<&'a Module>>) -> Vec<Vec<&'a Module>> {
    let reaches: BTreeMap<&Module, BTreeSet<&'a Module>> =
        edges.keys().map(|&module| (module, reachable(module, edges))).collect();
    let mut seen = BTreeSet::new();
    let mut circles = Vec::new();
    for (module, reached) in &reaches {
        let circle: Vec<&Module> =
            reached.iter().copied().filter(|other| reaches[other].contains(module)).collect();
        if reached.contains(module) && circle.iter().all(|member| seen.insert(*member)) {
            circles.push(circle);
        }
    }
    circles
}

/// All modules that can be reached from `from` by one edge or more.
fn reachable<'a>(
    from: &'a Module,
    edges: &BTreeMap<&'a Module, BTreeSet<&'a Module>>,
) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        open.extend(edges[module].iter().copied().filter(|next| reached.insert(*next)));
    }
    reached
}

impl Crate {
    fn read(source: &Path) -> Crate {
        let mut parsed =
            Crate { files: BTreeMap::new(), imports: BTreeMap::new(), mentioned: BTreeMap::new() };
        parsed.add_folder(source, &mut Vec::new());
        let modules: Vec<(Module, PathBuf)> =
            parsed.files.iter().map(|(module, file)| (module.clone(), file.clone())).collect();
        for (module, file) in modules {
            let text = without_tests(&fs::read_to_string(file).unwrap());
            let (imports, mentioned) = parsed.paths(&module, &text);
            parsed.imports.insert(module.clone(), imports);
            parsed.mentioned.insert(module, mentioned);
        }
        parsed
    }

    fn add_folder(&mut self, folder: &Path, module: &mut Module) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                if name != "tests" && name != "bin" {
                    module.push(name);
                    self.add_folder(&path, module);
                    module.pop();
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let mut own = module.clone();
                match name.as_str() {
                    "lib" | "main" | "mod" => {}
                    name if name == "tests" || name.ends_with("_tests") => continue,
                    _ => own.push(name),
                }
                self.files.insert(own, path);
            }
        }
    }

    /// What a module imports under which name, and all paths into the crate that it mentions.
    fn paths(
        &self,
        module: &Module,
        text: &str,
    ) -> (BTreeMap<String, Vec<String>>, BTreeSet<Vec<String>>) {
        let (mut imports, mut mentioned) = (BTreeMap::new(), BTreeSet::new());
        let mut rest = String::new();
        for statement in text.split_inclusive(';') {
            let Some(at) = find_use(statement) else {
                rest.push_str(statement);
                continue;
            };
            rest.push_str(&statement[..at]);
            let tree = statement[at..].trim_start_matches("use ").trim_end_matches(';');
            for (path, name) in leaves(tree) {
                if let Some(path) = self.absolute(module, &path) {
                    imports.insert(name, path.clone());
                    mentioned.insert(path);
                }
            }
        }
        let children: Vec<String> = self
            .files
            .keys()
            .filter(|file| file.len() == module.len() + 1 && file.starts_with(module))
            .map(|file| format!("{}::", file[module.len()]))
            .collect();
        let starts = ["crate::", "super::", "self::"].into_iter();
        for path in inline_paths(&rest, starts.chain(children.iter().map(String::as_str))) {
            mentioned.extend(self.absolute(module, &path));
        }
        (imports, mentioned)
    }

    /// A path from the crate's root; `None` for a path into another crate.
    fn absolute(&self, module: &Module, path: &[String]) -> Option<Vec<String>> {
        let mut base = module.clone();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => {
                base.clear();
                rest = &path[1..];
            }
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|name| name == "super") {
                    base.pop();
                    rest = &rest[1..];
                }
            }
            // A child module, as in `pub use child::Item`.
            name => {
                base.push(name.to_owned());
                let is_child = self.files.keys().any(|file| file.starts_with(&base));
                base.pop();
                if !is_child {
                    return None;
                }
            }
        }
        base.extend(rest.iter().cloned());
        Some(base)
    }

    /// The modules that define what `module` mentions.
    fn used_by(&self, module: &Module) -> BTreeSet<&Module> {
        let targets = self.mentioned[module].iter().filter_map(|path| self.definer(path, 0));
        targets.filter(|target| *target != module).collect()
    }

    /// The module that defines the item at a path, behind all re-exports.
    fn definer(&self, path: &[String], depth: usize) -> Option<&Module> {
        let known = (0..=path.len()).rev().find_map(|n| self.files.get_key_value(&path[..n]));
        let (module, _) = known?;
        let item = path.get(module.len());
        match item.and_then(|item| self.imports[module].get(item)) {
            Some(origin) if depth < 10 => {
                let mut origin = origin.clone();
                origin.extend(path[module.len() + 1..].iter().cloned());
                self.definer(&origin, depth + 1)
            }
            _ => Some(module),
        }
    }
}

/// The text without comments and without what is compiled for tests only.
fn without_tests(text: &str) -> String {
    let lines: Vec<&str> =
        text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    // By convention a module of tests ends its file.
    let is_for_tests =
        |line: &str| line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test,");
    let is_tests = |line: &str| ["mod tests {", "pub(crate) mod tests {"].contains(&line);
    let end = lines.windows(2).position(|pair| is_for_tests(pair[0]) && is_tests(pair[1]));
    lines[..end.unwrap_or(lines.len())].iter().map(|line| format!("{line}\n")).collect()
}

/// Where a `use` declaration begins in a statement.
fn find_use(statement: &str) -> Option<usize> {
    statement.match_indices("use ").map(|(at, _)| at).find(|&at| {
        let before = &statement[..at];
        let line = before.rsplit('\n').next().unwrap_or(before).trim();
        line.is_empty() || line == "pub" || line.starts_with("pub(") || line.ends_with('{')
    })
}

/// The paths of a `use` tree with the names that they get.
fn leaves(tree: &str) -> Vec<(Vec<String>, String)> {
    let tree = tree.trim();
    if let Some(brace) = tree.find('{') {
        let prefix = tree[..brace].trim().trim_end_matches("::");
        let inside = tree[brace + 1..].trim_end().trim_end_matches('}');
        let branches = split_outside_braces(inside).into_iter().flat_map(|part| leaves(&part));
        let prefix: Vec<String> = segments(prefix);
        return branches
            .map(|(path, name)| {
                let own = path.first().is_some_and(|first| first == "self") && path.len() == 1;
                let path = if own { prefix.clone() } else { [prefix.clone(), path].concat() };
                (path.clone(), if own { path.last().cloned().unwrap_or(name) } else { name })
            })
            .collect();
    }
    if tree.is_empty() {
        return Vec::new();
    }
    let (path, name) = tree.split_once(" as ").unwrap_or((tree, ""));
    let path = segments(path);
    let name = if name.is_empty() {
        path.last().cloned().unwrap_or_default()
    } else {
        name.trim().to_owned()
    };
    vec![(path, name)]
}

fn segments(path: &str) -> Vec<String> {
    path.split("::").map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

fn split_outside_braces(text: &str) -> Vec<String> {
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for letter in text.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().expect("there is always one").push(letter);
    }
    parts
}

/// Paths in code that begin with one of `starts`.
fn inline_paths<'a>(code: &str, starts: impl Iterator<Item = &'a str>) -> Vec<Vec<String>> {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut paths = Vec::new();
    for start in starts {
        for (at, _) in code.match_indices(start) {
            let begins =
                code[..at].chars().next_back().is_none_or(|c| !is_word(c) && c != ':' && c != '$');
            if begins {
                let end = code[at..]
                    .find(|c: char| !is_word(c) && c != ':')
                    .map_or(code.len(), |n| at + n);
                paths.push(segments(&code[at..end]));
            }
        }
    }
    paths
}

#[test]
fn a_circle_is_found_behind_re_exports_and_long_ways() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("lib.rs", "mod a;\nmod b;\nmod deep;\npub use a::A;\n");
    write("a.rs", "use crate::b::{self, B as Other};\npub struct A;\n");
    write(
        "b.rs",
        "pub struct B(crate::deep::C);\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n",
    );
    write("deep/mod.rs", "mod c;\npub use c::C;\n");
    write("deep/c.rs", "pub struct C;\n");
    assert!(circles(folder.path()).is_empty());
    write("deep/c.rs", "// use crate::b;\nuse crate::A;\npub struct C;\n");
    assert_eq!(circles(folder.path()), [["a.rs", "b.rs", "deep/c.rs"]]);
}

#[test]
fn folders_that_use_each_other_are_found_even_if_their_files_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("lib.rs", "mod low;\nmod high;\n");
    write("low/mod.rs", "mod base;\nmod more;\n");
    write("low/base.rs", "pub struct Base;\n");
    write("low/more.rs", "use super::base::Base;\n");
    write("high/mod.rs", "mod top;\n");
    write("high/top.rs", "use crate::low::base::Base;\npub struct Top;\n");
    assert!(folder_circles(folder.path()).is_empty());
    write("low/more.rs", "use crate::high::top::Top;\n");
    assert!(circles(folder.path()).is_empty());
    assert_eq!(folder_circles(folder.path()), [["high", "low"]]);
}
