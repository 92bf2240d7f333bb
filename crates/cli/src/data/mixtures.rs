//! Topic mixtures of documents: inferred, written as tables, and read again.

use crate::errors::hinted;
use anyhow::{Context, Result, bail};
use latens::corpus::{Documents, open_input};
use latens::lda::{Glda, InferenceParams, Inferred, Lda, Topics};
use latens::model::{Model, Params};
use latens::store::write_atomically;
use serde::Serialize;
use std::io::{self, Write};
use std::path::Path;

/// Infers the mixtures of documents that were read with the lexicon of the model.
pub(crate) fn infer(
    model: &dyn Model,
    documents: &Documents,
    params: InferenceParams,
) -> Result<Vec<Inferred>> {
    let params = params.validate()?;
    if let Some(lda) = model.downcast_ref::<Lda>() {
        return Ok(lda.infer_documents(documents, &params));
    }
    match model.downcast_ref::<Glda>() {
        Some(glda) => Ok(glda.infer_documents(documents, None, Topics::Fixed, &params)),
        None => bail!("it is {}", model.description()),
    }
}

/// The delimiter of a table: a comma in `.csv` files, otherwise a tab.
fn delimiter(path: &Path) -> u8 {
    let is_csv = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
    if is_csv { b',' } else { b'\t' }
}

/// Refuses the name of a picture or a page where a table is written, before any work is done.
pub(crate) fn check_table(path: Option<&Path>) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    if ["svg", "png", "pdf", "html"].iter().any(|&other| extension == other) {
        return Err(hinted(
            format!("`{}` does not have the extension of a table", path.display()),
            "use `.tsv` or `.csv`; commands that can plot write the plot with `--plot`",
        ));
    }
    Ok(())
}

/// The identifier of a document; its number, counted from 1, if it has none.
pub(crate) fn id_of(documents: &Documents, idx: usize) -> String {
    match documents.get(idx).id {
        "" => (idx + 1).to_string(),
        id => id.to_owned(),
    }
}

/// Writes mixtures to a file: CSV or tab-separated values, by its extension.
pub(crate) fn save(path: &Path, documents: &Documents, found: &[Inferred]) -> Result<()> {
    Ok(write_atomically(path, |mut out| write(documents, found, delimiter(path), &mut out))?)
}

/// Writes a header, and one row per document.
pub(crate) fn write(
    documents: &Documents,
    found: &[Inferred],
    delimiter: u8,
    out: &mut dyn Write,
) -> io::Result<()> {
    let n_topics = found.first().map_or(0, |found| found.mixture.len());
    let topics = (0..n_topics).map(|topic| format!("topic_{topic}"));
    let header = ["id", "label", "unknown"].map(str::to_owned);
    let mut table = csv::WriterBuilder::new().delimiter(delimiter).from_writer(out);
    table.write_record(header.into_iter().chain(topics))?;
    for (idx, found) in found.iter().enumerate() {
        let label = documents.get(idx).label.to_owned();
        let names = [id_of(documents, idx), label, found.n_skipped.to_string()];
        let shares = found.mixture.iter().map(|share| format!("{share:.6}"));
        table.write_record(names.into_iter().chain(shares))?;
    }
    table.flush()
}

/// Writes a table of rows to a file: CSV or tab-separated values, by its extension.
pub(crate) fn save_rows(path: &Path, rows: &[impl Serialize]) -> Result<()> {
    Ok(write_atomically(path, |mut out| write_rows(rows, delimiter(path), &mut out))?)
}

/// Writes a header, and one line per row.
pub(crate) fn write_rows(
    rows: &[impl Serialize],
    delimiter: u8,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut table = csv::WriterBuilder::new().delimiter(delimiter).from_writer(out);
    for row in rows {
        table.serialize(row).map_err(io::Error::other)?;
    }
    table.flush()
}

/// Mixtures that were written by [`save`].
pub(crate) struct Mixtures {
    pub(crate) ids: Vec<String>,
    /// One row per document, one entry per topic.
    pub(crate) shares: Vec<Vec<f64>>,
}

impl Mixtures {
    /// Reads a table with the mixtures of `n_topics` topics.
    pub(crate) fn open(path: &Path, n_topics: usize) -> Result<Mixtures> {
        let name = path.display();
        let input = open_input(path).with_context(|| format!("cannot read `{name}`"))?;
        let mut table = csv::ReaderBuilder::new().delimiter(delimiter(path)).from_reader(input);
        let header = table.headers().with_context(|| format!("cannot read `{name}`"))?.clone();
        let place = |name: &str| header.iter().position(|found| found == name);
        let topics: Option<Vec<usize>> =
            (0..n_topics).map(|topic| place(&format!("topic_{topic}"))).collect();
        let has_more = place(&format!("topic_{n_topics}")).is_some();
        let (Some(id), Some(topics), false) = (place("id"), topics, has_more) else {
            return Err(hinted(
                format!("`{name}` is not a table of mixtures of {n_topics} topics"),
                "write one with `latens train lda --mixtures` or `latens topics infer`",
            ));
        };
        let mut found = Mixtures { ids: Vec::new(), shares: Vec::new() };
        for record in table.records() {
            let record = record.with_context(|| format!("cannot read `{name}`"))?;
            let share = |&column: &usize| record.get(column)?.parse().ok();
            let shares: Option<Vec<f64>> = topics.iter().map(share).collect();
            let line = record.position().map_or(0, csv::Position::line);
            let shares = shares.with_context(|| format!("`{name}`, line {line}: not a number"))?;
            found.ids.push(record.get(id).unwrap_or_default().to_owned());
            found.shares.push(shares);
        }
        Ok(found)
    }

    /// The documents with the largest shares of a topic, in descending order.
    pub(crate) fn best(&self, topic: usize, n: usize) -> Vec<(&str, f64)> {
        let mut order: Vec<usize> = (0..self.ids.len()).collect();
        order.sort_by(|&a, &b| self.shares[b][topic].total_cmp(&self.shares[a][topic]));
        order.truncate(n);
        order.into_iter().map(|idx| (self.ids[idx].as_str(), self.shares[idx][topic])).collect()
    }
}
