//! Documents with words that do not occur in the training text (Das et al. 2015, Tables 2 and 3).
//!
//! Words of test documents are replaced by synonyms that do not occur in the training text but have a vector. Without
//! part-of-speech tags, far more words have such a synonym than in the paper. Word types are therefore replaced at random
//! until the fraction of replaced tokens is that of the paper.

mod synonyms;
mod replacement;
mod models;
mod classification;
mod deviations;

use crate::experiment::{Effort, Experiment, Row};
use anyhow::Result;
use std::path::Path;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "glda-oov",
    about: "documents with unseen words: classification of 20 Newsgroups (accuracy, %), and distances between topic \
            proportions on NIPS papers",
    run,
};

fn run(data: &Path, effort: Effort, note: &mut dyn FnMut(&str)) -> Result<Vec<Row>> {
    let mut rows = classification::run(data, effort, note)?;
    rows.extend(deviations::run(data, effort, note)?);
    Ok(rows)
}
