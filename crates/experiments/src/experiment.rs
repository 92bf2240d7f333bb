//! What an experiment is, and the rows of its table.

use serde::Serialize;
use std::path::Path;

/// One figure of a table.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The row's name, usually a model.
    pub row: String,
    /// The column's name, usually a data set.
    pub column: String,
    /// What the paper reports, if it does.
    pub paper: Option<f64>,
    /// What we measured.
    pub ours: f64,
}

/// An experiment of a paper.
pub struct Experiment {
    /// What the command line calls it.
    pub name: &'static str,
    /// What it measures, in one line.
    pub about: &'static str,
    /// Runs it on the corpora in a folder; `true` is for a smaller run of the same code; messages go to
    /// the last argument.
    pub run: Run,
}

/// How an experiment is run; see [`Experiment::run`].
pub type Run = fn(&Path, bool, &mut dyn FnMut(&str)) -> anyhow::Result<Vec<Row>>;

/// As [`Run`], with a picture besides the rows.
pub type Draw = fn(&Path, bool, &mut dyn FnMut(&str)) -> anyhow::Result<(Vec<Row>, String)>;
