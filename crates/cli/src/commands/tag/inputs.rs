//! Tagged text, its column of tags, and taggers, as the commands need them.

use crate::args::ReadingArgs;
use crate::errors::hinted;
use crate::train::TAG_COLUMN;
use anyhow::Result;
use latens::corpus::{Format, Inputs};
use latens::model::{Model, Tagger};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Inputs of tagged text, by default in columns.
pub(super) fn tagged_inputs(reading: &ReadingArgs, files: &[PathBuf]) -> Result<Inputs> {
    let mut inputs = reading.inputs(files)?;
    let says_nothing =
        |path: &PathBuf| matches!(Format::of_path(path), Format::Lines | Format::Docs(_));
    if inputs.format.is_none() && inputs.paths.iter().all(says_nothing) {
        inputs.format = Some(Format::Conll);
    }
    Ok(inputs)
}

/// The column of the tags, counted from 0: the given one, or that of the training text.
pub(super) fn column(named: Option<u16>, model: &dyn Model, path: &Path) -> Result<usize> {
    let Some(column) = named.map(u64::from).or_else(|| remembered_column(model)) else {
        let message = format!("`{}` does not record the column of its tags", path.display());
        return Err(hinted(message, "pass it with `--column`"));
    };
    Ok(column as usize - 1)
}

/// The column, counted from 1, of the training text that had the tags.
pub(super) fn remembered_column(model: &dyn Model) -> Option<u64> {
    model.facts().get(TAG_COLUMN).and_then(Value::as_u64).filter(|&column| column > 0)
}

/// The model as a tagger, or an error that says which models are.
pub(super) fn tagger<'a>(model: &'a dyn Model, path: &Path) -> Result<Box<dyn Tagger + 'a>> {
    model.as_tagger().ok_or_else(|| {
        hinted(
            format!(
                "`{}` is {}, which was trained without tags",
                path.display(),
                model.description()
            ),
            "train a tagger, e.g., `latens tag train news.conll --column 2 -o news.tagger`",
        )
    })
}
