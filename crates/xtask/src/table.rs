//! Markdown tables of records.

use crate::record::Record;
use anyhow::{Result, bail, ensure};

/// A text of a record that distinguishes rows or columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Field {
    Model,
    Data,
    Metric,
}

impl Field {
    const ALL: [Field; 3] = [Field::Model, Field::Data, Field::Metric];

    pub(crate) fn parse(name: &str) -> Result<Field> {
        Ok(match name {
            "model" => Field::Model,
            "data" => Field::Data,
            "metric" => Field::Metric,
            _ => bail!("`columns` must be model, data or metric, got `{name}`"),
        })
    }

    fn title(self) -> &'static str {
        match self {
            Field::Model => "Model",
            Field::Data => "Data",
            Field::Metric => "Metric",
        }
    }

    fn of(self, record: &Record) -> &str {
        match self {
            Field::Model => &record.model,
            Field::Data => &record.data,
            Field::Metric => &record.metric,
        }
    }
}

/// Renders records as a caption, a table and the commands that measure them.
///
/// With `columns`, each value of that field becomes a column and records that agree in the other fields share a row;
/// otherwise each record has a row. What all records have in common stands in the caption. `to_docs` is the relative
/// path from the page to `docs/`.
pub(crate) fn render(records: &[&Record], columns: Option<Field>, to_docs: &str) -> Result<String> {
    let table = Table::new(records, columns)?;
    let mut text = format!("{}\n\n", table.caption(to_docs));
    let header = table.header();
    text += &format!("| {} |\n|{}\n", header.join(" | "), "---|".repeat(header.len()));
    for row in table.rows()? {
        text += &format!("| {} |\n", row.join(" | "));
    }
    text.push('\n');
    text += &table.commands();
    Ok(text)
}

struct Table<'a> {
    records: &'a [&'a Record],
    columns: Option<Field>,
    /// Fields that distinguish rows.
    keys: Vec<Field>,
    /// Source of all references, if they have one in common.
    source: Option<String>,
    /// Unit of all records, if they have one in common.
    unit: Option<&'a str>,
}

impl<'a> Table<'a> {
    fn new(records: &'a [&'a Record], columns: Option<Field>) -> Result<Table<'a>> {
        ensure!(!records.is_empty(), "the table has no records");
        let varies = |field: Field| constant(records.iter().map(|r| field.of(r))).is_none();
        let mut keys: Vec<Field> =
            Field::ALL.into_iter().filter(|&f| Some(f) != columns && varies(f)).collect();
        if keys.is_empty() && columns != Some(Field::Model) {
            keys.push(Field::Model);
        }
        let references = records.iter().filter_map(|r| r.reference.as_ref());
        let source = constant(references.map(|r| format!("({}): {}", r.kind.name(), r.source)));
        let unit = constant(records.iter().map(|r| r.unit.as_deref().unwrap_or_default()));
        Ok(Table { records, columns, keys, source, unit: unit.filter(|unit| !unit.is_empty()) })
    }

    /// What all records have in common.
    fn caption(&self, to_docs: &str) -> String {
        let mut parts = Vec::new();
        for field in Field::ALL {
            let is_key = self.keys.contains(&field) || Some(field) == self.columns;
            if let Some(text) = constant(self.records.iter().map(|r| field.of(r)))
                && !is_key
            {
                parts.push(format!("{}: {text}", field.title()));
            }
        }
        parts.extend(self.unit.map(|unit| format!("Unit: {unit}")));
        parts.extend(self.source.iter().map(|source| format!("Reference {source}")));
        let link = |id: &str| format!("[{id}]({to_docs}machines.md#{id})");
        let listed = |texts: Vec<&str>, form: &dyn Fn(&str) -> String| {
            let texts: Vec<String> = distinct(texts).into_iter().map(form).collect();
            (!texts.is_empty()).then(|| texts.join(", "))
        };
        let machines = self.records.iter().map(|r| r.machine.as_str()).collect();
        parts.extend(listed(machines, &link).map(|ids| format!("Machine: {ids}")));
        let mut dates: Vec<&str> = self.records.iter().filter_map(|r| r.date.as_deref()).collect();
        dates.sort_unstable();
        parts.extend(listed(dates, &str::to_owned).map(|dates| format!("Date: {dates}")));
        let commits = self.records.iter().filter_map(|r| r.commit.as_deref()).collect();
        let commits = listed(commits, &|hash| format!("`{hash}`"));
        parts.extend(commits.map(|commits| format!("Commit: {commits}")));
        parts.join(" · ")
    }

    fn header(&self) -> Vec<String> {
        let mut header: Vec<String> = self.keys.iter().map(|f| f.title().to_owned()).collect();
        for column in self.value_columns() {
            if column.has_reference {
                header.push(match &column.name {
                    Some(name) => format!("{}, {}", capitalized(name), self.reference_name()),
                    None => "Reference".to_owned(),
                });
            }
            let name = column.name.map_or_else(|| "Ours".to_owned(), |name| capitalized(&name));
            header.push(match column.unit.filter(|_| self.unit.is_none()) {
                Some(unit) => format!("{name} ({unit})"),
                None => name,
            });
        }
        if self.records.iter().any(|r| r.note.is_some()) {
            header.push("Note".to_owned());
        }
        header
    }

    /// `paper` or `program` if all references are of one kind.
    fn reference_name(&self) -> &'static str {
        let kinds = self.records.iter().filter_map(|r| r.reference.as_ref()).map(|r| r.kind.name());
        constant(kinds).unwrap_or("reference")
    }

    fn value_columns(&self) -> Vec<Column> {
        let names = match self.columns {
            Some(field) => distinct(self.records.iter().map(|r| field.of(r)).collect())
                .into_iter()
                .map(|name| Some(name.to_owned()))
                .collect(),
            None => vec![None],
        };
        let column = |name: Option<String>| {
            let of: Vec<&Record> =
                self.records.iter().copied().filter(|r| self.is_in(r, &name)).collect();
            let has_reference = of.iter().any(|r| r.reference.is_some());
            let unit = constant(of.iter().map(|r| r.unit.clone())).flatten();
            Column { name, unit, has_reference }
        };
        names.into_iter().map(column).collect()
    }

    fn is_in(&self, record: &Record, column: &Option<String>) -> bool {
        let name = self.columns.map(|field| field.of(record));
        name == column.as_deref()
    }

    fn rows(&self) -> Result<Vec<Vec<String>>> {
        let key = |record: &Record| -> Vec<String> {
            self.keys.iter().map(|field| field.of(record).to_owned()).collect()
        };
        let has_notes = self.records.iter().any(|r| r.note.is_some());
        let mut rows = Vec::new();
        for row_key in distinct(self.records.iter().map(|r| key(r)).collect()) {
            let of_row: Vec<&Record> =
                self.records.iter().copied().filter(|r| key(r) == row_key).collect();
            let mut cells = row_key;
            for column in self.value_columns() {
                let mut of_cell = of_row.iter().filter(|r| self.is_in(r, &column.name));
                let record = of_cell.next();
                if let (Some(first), Some(second)) = (record, of_cell.next()) {
                    bail!("`{}` and `{}` would share a cell", first.id, second.id);
                }
                if column.has_reference {
                    cells.push(record.and_then(|r| self.reference(r, &column)).unwrap_or_default());
                }
                cells.push(record.map_or_else(String::new, |r| self.value(r, &column)));
            }
            if has_notes {
                let notes = distinct(of_row.iter().filter_map(|r| r.note.as_deref()).collect());
                cells.push(notes.join("; "));
            }
            rows.push(cells);
        }
        Ok(rows)
    }

    fn value(&self, record: &Record, column: &Column) -> String {
        let value = self.with_unit(record.value(), record, column);
        match record.spread() {
            Some(spread) => format!("{value} ({spread})"),
            None => value,
        }
    }

    fn reference(&self, record: &Record, column: &Column) -> Option<String> {
        let value = self.with_unit(record.reference_value()?, record, column);
        let source = record.reference.as_ref().filter(|_| self.source.is_none());
        Some(source.map_or_else(|| value.clone(), |of| format!("{value} ({})", of.source)))
    }

    /// The unit stands in the caption, in the header, or behind the number.
    fn with_unit(&self, value: String, record: &Record, column: &Column) -> String {
        let is_elsewhere = self.unit.is_some() || column.unit.is_some();
        match record.unit.as_deref().filter(|_| !is_elsewhere) {
            Some(unit) => with_unit(&value, Some(unit)),
            None => value,
        }
    }

    /// The distinct commands, with the models that they are for if there are several.
    fn commands(&self) -> String {
        let commands = distinct(self.records.iter().filter_map(|r| r.command.as_deref()).collect());
        match commands[..] {
            [] => String::new(),
            [command] => format!("```sh\n{command}\n```\n\n"),
            _ => {
                let fields = self.label_fields(&commands);
                let block = |command: &&str| {
                    format!("# {}\n{command}\n", self.labels(command, &fields).join("; "))
                };
                let blocks: String = commands.iter().map(block).collect();
                format!(
                    "<details>\n<summary>Commands</summary>\n\n```sh\n{blocks}```\n\n</details>\n\n"
                )
            }
        }
    }

    /// The fewest fields that distinguish the records of one command from those of all others.
    fn label_fields(&self, commands: &[&str]) -> Vec<Field> {
        use Field::{Data, Metric, Model};
        let choices: [&[Field]; 6] =
            [&[Model], &[Data], &[Metric], &[Model, Data], &[Model, Metric], &[Data, Metric]];
        let is_enough = |fields: &[Field]| {
            let labels = commands.iter().map(|command| self.labels(command, fields));
            let labels: Vec<String> = labels.flatten().collect();
            distinct(labels.clone()).len() == labels.len()
        };
        choices.into_iter().find(|fields| is_enough(fields)).unwrap_or(&Field::ALL).to_vec()
    }

    /// The distinct labels of the records of a command.
    fn labels(&self, command: &str, fields: &[Field]) -> Vec<String> {
        let of = self.records.iter().filter(|r| r.command.as_deref() == Some(command));
        let label = |record: &&Record| -> String {
            fields.iter().map(|field| field.of(record)).collect::<Vec<_>>().join(", ")
        };
        distinct(of.map(label).collect())
    }
}

/// Column of figures; without a name if there is only one.
struct Column {
    name: Option<String>,
    /// Unit of all figures of the column, if they have one in common.
    unit: Option<String>,
    has_reference: bool,
}

/// `93.96%`, `34 s`.
pub(crate) fn with_unit(value: &str, unit: Option<&str>) -> String {
    match unit {
        None => value.to_owned(),
        Some("%") => format!("{value}%"),
        Some(unit) => format!("{value} {unit}"),
    }
}

/// The text with a capital letter.
fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The value that all have in common.
fn constant<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Option<T> {
    let mut values = values.into_iter();
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)
}

/// Each value once, in the order of first appearance.
fn distinct<T: PartialEq>(values: Vec<T>) -> Vec<T> {
    let mut kept = Vec::new();
    for value in values {
        if !kept.contains(&value) {
            kept.push(value);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    #[test]
    fn without_columns_each_record_has_a_row() {
        let records =
            [record("x-1", "small", "valid", "120"), record("x-2", "large", "valid", "99.50")];
        let text = render(&records.iter().collect::<Vec<_>>(), None, "../").unwrap();
        let expected = "Data: d · Metric: valid · Machine: [fast](../machines.md#fast)\n\n\
                        | Model | Ours |\n|---|---|\n| small | 120 |\n| large | 99.50 |\n\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn columns_spread_a_field() {
        let records = [
            record("x-1", "small", "valid", "120"),
            record("x-2", "small", "test", "110"),
            record("x-3", "large", "test", "99"),
        ];
        let text = render(&records.iter().collect::<Vec<_>>(), Some(Field::Metric), "").unwrap();
        assert!(text.contains("| Model | Valid | Test |"), "{text}");
        assert!(text.contains("| small | 120 | 110 |\n| large |  | 99 |"), "{text}");
    }

    #[test]
    fn commands_are_labeled_by_what_distinguishes_them() {
        let with_command = |id, model, metric, command: &str| {
            let mut record = record(id, model, metric, "1");
            record.command = Some(command.to_owned());
            record
        };
        let records = [
            with_command("x-1", "small", "valid", "latens small"),
            with_command("x-2", "small", "test", "latens small"),
            with_command("x-3", "large", "test", "latens large"),
        ];
        let text = render(&records.iter().collect::<Vec<_>>(), None, "").unwrap();
        assert!(text.contains("# small\nlatens small\n# large\nlatens large\n"), "{text}");
    }

    #[test]
    fn two_records_in_one_cell_are_an_error() {
        let records = [record("x-1", "m", "valid", "1"), record("x-2", "m", "valid", "2")];
        let error = render(&records.iter().collect::<Vec<_>>(), None, "").unwrap_err();
        assert!(error.to_string().contains("`x-1` and `x-2`"), "{error}");
    }
}
