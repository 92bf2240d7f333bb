//! The models table of the README.

use crate::record::Record;
use crate::table::with_unit;
use anyhow::{Context, Result};
use serde::Deserialize;

/// `results/models.toml`: which figures the README shows.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Models {
    row: Vec<Row>,
}

/// One line of the table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    model: String,
    #[serde(default)]
    role: String,
    /// Text of the column "Measured on", if data and metric of the first record do not say enough.
    measured_on: Option<String>,
    /// Ids of one or more records, whose figures are joined by an arrow.
    records: Vec<String>,
}

/// The table, from the text of `results/models.toml`.
pub(crate) fn models_table(wishes: &str, records: &[&Record]) -> Result<String> {
    let models: Models = toml::from_str(wishes).context("results/models.toml")?;
    let mut text =
        "| Model | Role | Measured on | Reference | Ours |\n|---|---|---|---|---|\n".to_owned();
    for row in &models.row {
        let find = |id: &String| {
            let found = records.iter().copied().find(|record| record.id == *id);
            found.with_context(|| format!("results/models.toml: there is no record `{id}`"))
        };
        let chosen = row.records.iter().map(find).collect::<Result<Vec<_>>>()?;
        let first = chosen.first().with_context(|| format!("`{}` has no records", row.model))?;
        let default = || format!("{}, {}", first.data, first.metric);
        let cells = [
            row.model.clone(),
            row.role.clone(),
            row.measured_on.clone().unwrap_or_else(default),
            reference(&chosen),
            joined(chosen.iter().map(|r| ours(r)).collect()),
        ];
        text += &format!("| {} |\n", cells.join(" | "));
    }
    Ok(text)
}

/// The figure with its unit and its range over repetitions.
fn ours(record: &Record) -> String {
    let value = with_unit(&record.value(), record.unit.as_deref());
    match record.spread() {
        Some(spread) => format!("{value} ({spread})"),
        None => value,
    }
}

/// The figures of the reference and where they come from: `115.8 (paper: Chiu & Rush 2020)`.
fn reference(records: &[&Record]) -> String {
    let figure = |r: &&Record| Some(with_unit(&r.reference_value()?, r.unit.as_deref()));
    let figures: Vec<String> = records.iter().filter_map(figure).collect();
    let last = records.iter().rev().find_map(|record| record.reference.as_ref());
    match last {
        Some(of) => format!("{} ({}: {})", joined(figures), of.kind.name(), of.source),
        None => String::new(),
    }
}

fn joined(figures: Vec<String>) -> String {
    figures.join(" → ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    #[test]
    fn rows_name_records() {
        let records = [record("x-1", "m", "valid perplexity", "1.50")];
        let records: Vec<&Record> = records.iter().collect();
        let wishes = "[[row]]\nmodel = \"`x`\"\nrole = \"encoder\"\nrecords = [\"x-1\"]\n";
        let table = models_table(wishes, &records).unwrap();
        assert!(table.ends_with("| `x` | encoder | d, valid perplexity |  | 1.50 |\n"), "{table}");
        let error = models_table(&wishes.replace("x-1", "x-2"), &records).unwrap_err();
        assert!(error.to_string().contains("no record `x-2`"), "{error}");
    }
}
