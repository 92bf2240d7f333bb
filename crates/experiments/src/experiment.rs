//! An experiment, and the rows of its table.

use serde::Serialize;
use std::path::Path;

/// One figure of a table.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Name of the row, usually a model.
    pub row: String,
    /// Name of the column, usually a data set.
    pub column: String,
    /// The figure that the paper reports, if it does.
    pub paper: Option<f64>,
    /// The figure that we measured.
    pub ours: f64,
}

/// An experiment that reproduces a table or figure of a paper.
pub struct Experiment {
    /// Name on the command line.
    pub name: &'static str,
    /// One-line description of what it measures.
    pub about: &'static str,
    /// Runs the experiment.
    pub run: Run,
}

/// Runs an experiment on the corpora in a folder. The flag asks for a quick run: the same code with smaller models and
/// less data. The last argument receives progress messages.
pub type Run = fn(&Path, bool, &mut dyn FnMut(&str)) -> anyhow::Result<Vec<Row>>;

/// Runs an experiment like [`Run`], and also returns its figure as SVG.
pub type Draw = fn(&Path, bool, &mut dyn FnMut(&str)) -> anyhow::Result<(Vec<Row>, String)>;
