//! The records of `results/*.jsonl`: one figure per line, read strictly.

use crate::numbers::{grouped, literals};
use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Deserializer};
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;

/// One measured figure. Every field must be present; those of type `Option` may be `null`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    /// Name that never changes, e.g., `hmm-ptb-32768-test`.
    pub(crate) id: String,
    /// Model and the settings that distinguish it from others in its table.
    pub(crate) model: String,
    /// Corpus that was measured on.
    pub(crate) data: String,
    /// Quantity that was measured.
    pub(crate) metric: String,
    /// Unit of all numbers of the record.
    #[serde(deserialize_with = "present")]
    pub(crate) unit: Option<String>,
    value: f64,
    #[serde(deserialize_with = "present")]
    spread: Option<Spread>,
    /// Figure to compare with.
    #[serde(deserialize_with = "present")]
    pub(crate) reference: Option<Reference>,
    /// Command lines that measure the figure, one per line.
    #[serde(deserialize_with = "present")]
    pub(crate) command: Option<String>,
    /// Commit of the measured program.
    #[serde(deserialize_with = "present")]
    pub(crate) commit: Option<String>,
    /// Section of `docs/machines.md`.
    pub(crate) machine: String,
    /// Day of the measurement, `YYYY-MM-DD`.
    #[serde(deserialize_with = "present")]
    pub(crate) date: Option<String>,
    /// Anything else that a reader must know.
    #[serde(deserialize_with = "present")]
    pub(crate) note: Option<String>,
    /// Numbers as written, by path.
    #[serde(skip)]
    literals: HashMap<String, String>,
}

/// Range of a figure over repetitions.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spread {
    over: Over,
    #[serde(deserialize_with = "present")]
    n: Option<u32>,
    min: f64,
    max: f64,
}

/// What was repeated.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Over {
    Seeds,
    Runs,
    Epochs,
    Iterations,
}

/// A figure of somebody else's.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reference {
    pub(crate) kind: Kind,
    value: f64,
    /// Paper and table, or program and version.
    pub(crate) source: String,
}

/// Where a reference comes from.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Paper,
    Program,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Paper => "paper",
            Kind::Program => "program",
        }
    }
}

/// Demands that the field is there: by itself, serde takes a missing `Option` for `null`.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(from)
}

impl Record {
    /// Parses and checks one line.
    fn parse(line: &str, machines: &BTreeSet<String>) -> Result<Record> {
        let mut record: Record = serde_json::from_str(line)?;
        record.check(machines)?;
        record.literals = literals(line);
        Ok(record)
    }

    fn check(&self, machines: &BTreeSet<String>) -> Result<()> {
        let id = &self.id;
        let is_id_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        ensure!(
            !id.is_empty() && id.chars().all(is_id_letter),
            "`id` must consist of lowercase letters, digits and `-`, got `{id}`"
        );
        for (name, text) in [("model", &self.model), ("data", &self.data), ("metric", &self.metric)]
        {
            ensure!(!text.trim().is_empty(), "`{name}` must not be empty");
            ensure!(!text.contains(['|', '\n']), "`{name}` must not contain `|` or a line break");
        }
        let reference = self.reference.as_ref().map(|reference| reference.value);
        for value in [Some(self.value), reference].into_iter().flatten() {
            ensure!(value.is_finite(), "values must be finite, got {value}");
        }
        let machine = &self.machine;
        ensure!(
            machines.contains(machine),
            "`machine` must be a section of docs/machines.md, got `{machine}`"
        );
        if let Some(date) = &self.date {
            ensure!(is_date(date), "`date` must have the form YYYY-MM-DD, got `{date}`");
        }
        if let Some(commit) = &self.commit {
            let is_hash = (7..=40).contains(&commit.len())
                && commit.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c));
            ensure!(is_hash, "`commit` must be 7 to 40 hexadecimal digits, got `{commit}`");
        }
        if let Some(Spread { min, max, .. }) = &self.spread {
            ensure!(min <= max, "`spread` has min = {min} above max = {max}");
        }
        Ok(())
    }

    /// The figure with the digits of the record, without the unit.
    pub(crate) fn value(&self) -> String {
        self.number("value")
    }

    /// The range over repetitions, e.g., `0.45–0.56 over 5 runs`.
    pub(crate) fn spread(&self) -> Option<String> {
        let Spread { over, n, .. } = self.spread.as_ref()?;
        let range = format!("{}–{}", self.number("spread.min"), self.number("spread.max"));
        let over = match over {
            Over::Seeds => "seeds",
            Over::Runs => "runs",
            Over::Epochs => "epochs",
            Over::Iterations => "iterations",
        };
        Some(match n {
            Some(n) => format!("{range} over {n} {over}"),
            None => format!("{range} over {over}"),
        })
    }

    /// The reference's figure with the digits of the record.
    pub(crate) fn reference_value(&self) -> Option<String> {
        self.reference.as_ref().map(|_| self.number("reference.value"))
    }

    fn number(&self, path: &str) -> String {
        self.literals.get(path).map_or_else(String::new, |literal| grouped(literal))
    }
}

fn is_date(text: &str) -> bool {
    let is_digit = |at: usize| text.as_bytes()[at].is_ascii_digit();
    text.len() == 10
        && text.is_ascii()
        && (0..10).all(|at| if at == 4 || at == 7 { &text[at..=at] == "-" } else { is_digit(at) })
}

/// All records of one file.
pub(crate) struct Family {
    /// The file's name without its extension; the page has the same.
    pub(crate) name: String,
    pub(crate) records: Vec<Record>,
}

/// Reads all records, by file name. The ids of a set of records are unique.
pub(crate) fn read_all(root: &Path) -> Result<Vec<Family>> {
    let machines = read_machines(root)?;
    let folder = root.join("results");
    let entries =
        fs::read_dir(&folder).with_context(|| format!("cannot read `{}`", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    paths.sort();
    let mut known = BTreeSet::new();
    paths.iter().map(|path| read_family(path, &machines, &mut known)).collect()
}

fn read_family(
    path: &Path,
    machines: &BTreeSet<String>,
    known: &mut BTreeSet<String>,
) -> Result<Family> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let mut records = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let place = || format!("results/{name}.jsonl:{}", i + 1);
        let record = Record::parse(line, machines).with_context(place)?;
        ensure!(
            record.command.is_some() || record.note.is_some(),
            "{}: `{}` has no `command`, and no `note` that says how it is computed",
            place(),
            record.id
        );
        if !known.insert(record.id.clone()) {
            bail!("{}: the id `{}` is already taken", place(), record.id);
        }
        records.push(record);
    }
    Ok(Family { name, records })
}

/// The ids of all machines: the second-level headings of `docs/machines.md`.
fn read_machines(root: &Path) -> Result<BTreeSet<String>> {
    let path = root.join("docs/machines.md");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let headings = text.lines().filter_map(|line| line.strip_prefix("## "));
    Ok(headings.map(|heading| heading.trim().to_owned()).collect())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const LINE: &str = r#"{"id": "x-1", "model": "m", "data": "d", "metric": "test perplexity", "unit": null, "value": 114.40, "spread": {"over": "seeds", "n": 3, "min": 114.40, "max": 115.34}, "reference": {"kind": "paper", "value": 115.8, "source": "A & B 2020, Table 1"}, "command": "latens demo", "commit": "b8c9005", "machine": "fast", "date": "2026-11-16", "note": null}"#;

    pub(crate) fn record(id: &str, model: &str, metric: &str, value: &str) -> Record {
        let line = format!(
            r#"{{"id": "{id}", "model": "{model}", "data": "d", "metric": "{metric}", "unit": null, "value": {value}, "spread": null, "reference": null, "command": null, "commit": null, "machine": "fast", "date": null, "note": null}}"#
        );
        Record::parse(&line, &machines()).unwrap()
    }

    fn machines() -> BTreeSet<String> {
        BTreeSet::from(["fast".to_owned()])
    }

    fn error(line: &str) -> String {
        format!("{:#}", Record::parse(line, &machines()).unwrap_err())
    }

    #[test]
    fn a_record_keeps_the_digits_as_written() {
        let record = Record::parse(LINE, &machines()).unwrap();
        assert_eq!(record.value(), "114.40");
        assert_eq!(record.spread().unwrap(), "114.40–115.34 over 3 seeds");
        assert_eq!(record.reference_value().unwrap(), "115.8");
    }

    #[test]
    fn malformed_records_are_refused() {
        let cases = [
            (LINE.replace("\"note\"", "\"notes\""), "unknown field `notes`"),
            (LINE.replace(", \"note\": null", ""), "missing field `note`"),
            (LINE.replace("\"machine\": \"fast\", ", ""), "missing field `machine`"),
            (LINE.replace("\"fast\"", "\"slow\""), "section of docs/machines.md, got `slow`"),
            (LINE.replace("2026-11-16", "16.11.2026"), "YYYY-MM-DD"),
            (LINE.replace("b8c9005", "HEAD"), "hexadecimal"),
            (LINE.replace("x-1", "X 1"), "lowercase letters"),
            (LINE.replace("\"paper\"", "\"hearsay\""), "unknown variant `hearsay`"),
            (LINE.replace("115.34", "1"), "above max"),
            (LINE.replace("114.40,", "\"114\","), "invalid type: string"),
        ];
        for (line, expected) in cases {
            let message = error(&line);
            assert!(message.contains(expected), "{expected}: {message}");
        }
    }

    #[test]
    fn errors_name_the_file_and_the_line() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("docs")).unwrap();
        fs::create_dir_all(root.join("results")).unwrap();
        fs::write(root.join("docs/machines.md"), "# Machines\n\n## fast\n").unwrap();
        fs::write(root.join("results/a.jsonl"), format!("{LINE}\n")).unwrap();
        assert_eq!(read_all(root).unwrap()[0].records.len(), 1);
        fs::write(root.join("results/b.jsonl"), format!("{}\n{LINE}\n", LINE.replace("x-1", "y")))
            .unwrap();
        let message = format!("{:#}", read_all(root).err().unwrap());
        assert_eq!(message, "results/b.jsonl:2: the id `x-1` is already taken");
        let line = LINE.replace("x-1", "y").replace("\"latens demo\"", "null");
        fs::write(root.join("results/b.jsonl"), line).unwrap();
        let message = format!("{:#}", read_all(root).err().unwrap());
        assert!(message.starts_with("results/b.jsonl:1: `y` has no `command`"), "{message}");
        fs::write(root.join("results/b.jsonl"), "{}\n").unwrap();
        let message = format!("{:#}", read_all(root).err().unwrap());
        assert!(message.starts_with("results/b.jsonl:1: missing field"), "{message}");
    }
}
