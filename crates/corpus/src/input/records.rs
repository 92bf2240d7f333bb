//! Parses the records (sentences or documents) of a block of text.

use crate::error::ReadError;
use crate::input::blocks::Block;
use crate::input::columns::Columns;
use crate::input::format::{Field, Format};
use crate::input::rows::Row;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// One sentence or document of a file.
pub(crate) struct Record<'a> {
    pub(crate) text: Text<'a>,
    pub(crate) label: Cow<'a, str>,
    pub(crate) split: Cow<'a, str>,
    pub(crate) id: Cow<'a, str>,
    /// The columns of [`Columns::kept`].
    pub(crate) kept: Vec<String>,
    /// All columns of all tokens; empty for formats without columns.
    pub(crate) rows: &'a [Vec<&'a str>],
    /// First line of the record in its file.
    pub(crate) line: u64,
    /// Whether the tokens are words as they are, without preprocessing.
    pub(crate) is_final: bool,
}

/// The text of a record.
pub(crate) enum Text<'a> {
    /// Not yet split into words.
    Raw(Cow<'a, str>),
    /// One string per word.
    Tokens(Vec<Cow<'a, str>>),
}

impl<'a> Record<'a> {
    pub(crate) fn of_text(text: &'a str, line: u64) -> Record<'a> {
        let [label, split, id] = ["", "", ""].map(Cow::Borrowed);
        Record {
            text: Text::Raw(text.into()),
            label,
            split,
            id,
            kept: Vec::new(),
            rows: &[],
            line,
            is_final: false,
        }
    }

    fn of_row(row: &'a Row) -> Record<'a> {
        Record {
            label: row.label.as_str().into(),
            id: row.id.as_str().into(),
            kept: row.kept.clone(),
            ..Record::of_text(&row.text, row.line)
        }
    }
}

impl Block {
    /// Calls `visit` with each record of the block.
    pub(crate) fn records(&self, mut visit: impl FnMut(Record<'_>)) -> Result<(), ReadError> {
        self.rows.iter().for_each(|row| visit(Record::of_row(row)));
        let text = self.text()?;
        let lines = text.lines().zip(self.first_line..);
        match &self.format {
            Format::Lines => {
                lines.for_each(|(line, number)| visit(Record::of_text(line, number)));
            }
            Format::Docs(fields) => {
                for (line, number) in lines.filter(|(line, _)| !line.trim().is_empty()) {
                    visit(document(line, number, fields).map_err(|p| self.problem(number, p))?);
                }
            }
            // Ids are read as JSON objects with the names of the tokens.
            Format::Jsonl | Format::Ids => {
                for (line, number) in lines.filter(|(line, _)| !line.trim().is_empty()) {
                    let is_final = self.format == Format::Ids;
                    let mut visit = |record: Record<'_>| visit(Record { is_final, ..record });
                    json_record(line, number, &self.columns, &mut visit)
                        .map_err(|p| self.problem(number, p))?;
                }
            }
            // A table has rows, which are visited above.
            Format::Csv => {}
            Format::Tsv => {
                for (line, number) in lines.filter(|(line, _)| !line.trim().is_empty()) {
                    visit(labeled(line, number).map_err(|p| self.problem(number, p))?);
                }
            }
            Format::Conll => self.columns(lines, conll_row, &mut visit)?,
            Format::Conllu => self.columns(lines, conllu_row, &mut visit)?,
        }
        Ok(())
    }

    /// Collects rows until a blank line and visits each sentence. `row` returns the columns and the
    /// index of the word column, or `None` for lines that are not tokens.
    fn columns<'t>(
        &self,
        lines: impl Iterator<Item = (&'t str, u64)>,
        row: impl Fn(&'t str) -> Result<Option<(Vec<&'t str>, usize)>, String>,
        visit: &mut impl FnMut(Record<'_>),
    ) -> Result<(), ReadError> {
        let (mut rows, mut words, mut first_line) = (Vec::new(), Vec::new(), 0);
        for (line, number) in lines.chain([("", 0)]) {
            if !line.trim().is_empty() {
                if let Some((columns, word)) = row(line).map_err(|p| self.problem(number, p))? {
                    if rows.is_empty() {
                        first_line = number;
                    }
                    words.push(Cow::Borrowed(columns[word]));
                    rows.push(columns);
                }
            } else if !rows.is_empty() {
                let text = Text::Tokens(std::mem::take(&mut words));
                visit(Record { text, rows: &rows, ..Record::of_text("", first_line) });
                rows.clear();
            }
        }
        Ok(())
    }

    pub(crate) fn problem(&self, line: u64, problem: String) -> ReadError {
        ReadError::Line { file: self.file.clone(), line, problem }
    }
}

fn document<'a>(line: &'a str, number: u64, fields: &[Field]) -> Result<Record<'a>, String> {
    let parts: Vec<&str> = line.splitn(fields.len(), '\t').collect();
    if parts.len() < fields.len() {
        let (found, wanted) = (parts.len(), fields.len());
        return Err(format!("expected {wanted} tab-separated fields, found {found}"));
    }
    let mut record = Record::of_text("", number);
    for (part, field) in parts.into_iter().zip(fields) {
        match field {
            Field::Id => record.id = part.into(),
            Field::Label => record.label = part.into(),
            Field::Split => record.split = part.into(),
            Field::Text => record.text = Text::Raw(part.into()),
            Field::Skip => {}
        }
    }
    Ok(record)
}

/// A line of tab-separated values without a header: label and text, and nothing else.
fn labeled(line: &str, number: u64) -> Result<Record<'_>, String> {
    /// Length of the excerpt in a message.
    const N_CHARS: usize = 120;
    let n_fields = line.split('\t').count();
    if n_fields <= 2 {
        return document(line, number, &[Field::Label, Field::Text]);
    }
    let excerpt: String = line.chars().take(N_CHARS).collect();
    Err(format!(
        "{n_fields} tab-separated fields, but no header with a column `text`: `{}`",
        excerpt.replace('\t', "<TAB>")
    ))
}

#[derive(Deserialize)]
struct JsonRecord<'a> {
    #[serde(borrow)]
    text: JsonText<'a>,
    #[serde(default)]
    id: Option<JsonLabel>,
    #[serde(default)]
    label: Option<JsonLabel>,
    #[serde(default)]
    tags: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "`text` must be a string or a list of strings")]
enum JsonText<'a> {
    Raw(#[serde(borrow)] Cow<'a, str>),
    Tokens(Vec<String>),
}

/// Labels may be numbers.
#[derive(Deserialize)]
#[serde(untagged, expecting = "`label` and `id` must be strings or numbers")]
enum JsonLabel {
    Name(String),
    Number(serde_json::Number),
}

impl JsonLabel {
    fn into_name(self) -> String {
        match self {
            JsonLabel::Name(name) => name,
            JsonLabel::Number(number) => number.to_string(),
        }
    }
}

/// The record with the keys of `columns`, and the values to keep.
fn json_keys<'a>(
    line: &'a str,
    columns: &Columns,
) -> Result<(JsonRecord<'a>, Vec<String>), String> {
    let no_text = |error: &dyn std::fmt::Display| {
        format!("not a JSON object with the key `{}`: {error}", columns.text_name())
    };
    if *columns == Columns::default() {
        let record = serde_json::from_str(line).map_err(|error| no_text(&error))?;
        return Ok((record, Vec::new()));
    }
    let mut object: Map<String, Value> =
        serde_json::from_str(line).map_err(|error| no_text(&error))?;
    let name = |value: Option<&Value>| match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let kept = columns.kept.iter().map(|key| name(object.get(key))).collect();
    let [id, label] =
        [columns.id_name(), columns.label_name()].map(|key| object.get(key).map(|v| name(Some(v))));
    let text =
        object.remove(columns.text_name()).ok_or_else(|| no_text(&"there is no such key"))?;
    let text: JsonText<'static> = match text {
        Value::String(text) => JsonText::Raw(text.into()),
        other => JsonText::Tokens(serde_json::from_value(other).map_err(|error| no_text(&error))?),
    };
    let tags = object.remove("tags").map(serde_json::from_value).transpose();
    let tags = tags.map_err(|error| format!("`tags` must be a list of strings: {error}"))?;
    let [id, label] = [id, label].map(|name| name.map(JsonLabel::Name));
    Ok((JsonRecord { text, id, label, tags }, kept))
}

fn json_record(
    line: &str,
    number: u64,
    columns: &Columns,
    visit: &mut impl FnMut(Record<'_>),
) -> Result<(), String> {
    let (record, kept) = json_keys(line, columns)?;
    let [id, label] =
        [record.id, record.label].map(|name| name.map(JsonLabel::into_name).unwrap_or_default());
    let tags = record.tags.unwrap_or_default();
    let tokens: Vec<&str> = match &record.text {
        JsonText::Raw(text) => text.split_ascii_whitespace().collect(),
        JsonText::Tokens(tokens) => tokens.iter().map(String::as_str).collect(),
    };
    check_tokens(&tokens)?;
    if !tags.is_empty() && tags.len() != tokens.len() {
        return Err(format!("{} tags for {} tokens", tags.len(), tokens.len()));
    }
    let rows: Vec<Vec<&str>> =
        tokens.iter().zip(&tags).map(|(&token, tag)| vec![token, tag.as_str()]).collect();
    let text = match &record.text {
        JsonText::Raw(text) if tags.is_empty() => Text::Raw(Cow::Borrowed(text)),
        _ => Text::Tokens(tokens.into_iter().map(Cow::Borrowed).collect()),
    };
    let (label, id) = (label.into(), id.into());
    visit(Record { text, label, id, kept, rows: &rows, ..Record::of_text("", number) });
    Ok(())
}

/// Fails if a token could not be written to a line of text and read again.
pub(crate) fn check_tokens(tokens: &[&str]) -> Result<(), String> {
    let unfit = |token: &&&str| token.is_empty() || token.contains(['\t', '\n', '\r']);
    match tokens.iter().find(unfit) {
        Some(token) => {
            Err(format!("the token {token:?} is empty or contains a tab or a line break"))
        }
        None => Ok(()),
    }
}

pub(crate) fn conll_row(line: &str) -> Result<Option<(Vec<&str>, usize)>, String> {
    let columns: Vec<&str> = line.split_ascii_whitespace().collect();
    Ok(if columns.is_empty() || columns[0] == "-DOCSTART-" { None } else { Some((columns, 0)) })
}

pub(crate) fn conllu_row(line: &str) -> Result<Option<(Vec<&str>, usize)>, String> {
    if line.starts_with('#') {
        return Ok(None);
    }
    let columns: Vec<&str> = line.split('\t').collect();
    if columns.len() != 10 {
        return Err(format!(
            "expected the 10 tab-separated columns of CoNLL-U, found {}",
            columns.len()
        ));
    }
    check_tokens(&columns[1..2])?;
    if columns[0].contains(['-', '.']) {
        return Ok(None);
    }
    Ok(Some((columns, 1)))
}
