//! An experiment, and the rows of its table.

use serde::Serialize;
use std::path::Path;

/// One figure of a table.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Row {
    /// Name of the row, usually a model.
    pub row: String,
    /// Name of the column, usually a data set.
    pub column: String,
    /// The figure that the paper reports, if it does.
    pub paper: Option<f64>,
    /// The figure that we measured: the mean, if there are several seeds.
    pub ours: f64,
    /// The figures of the single seeds, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub of_seeds: Vec<f64>,
}

impl Row {
    /// A figure of a single run.
    pub fn new(
        row: impl Into<String>,
        column: impl Into<String>,
        paper: Option<f64>,
        ours: f64,
    ) -> Row {
        Row { row: row.into(), column: column.into(), paper, ours, of_seeds: Vec::new() }
    }

    /// The mean over some seeds.
    pub(crate) fn of_seeds(row: &str, column: &str, paper: Option<f64>, ours: Vec<f64>) -> Row {
        let mean = ours.iter().sum::<f64>() / ours.len() as f64;
        let of_seeds = if ours.len() > 1 { ours } else { Vec::new() };
        Row { of_seeds, ..Row::new(row, column, paper, mean) }
    }
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

/// How much an experiment computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// The same code with smaller models and less data.
    Quick,
    /// What the paper measured.
    Full,
}

impl Effort {
    pub(crate) fn is_quick(self) -> bool {
        self == Effort::Quick
    }
}

/// Runs an experiment on the corpora in a folder. The last argument receives progress messages.
pub type Run = fn(&Path, Effort, &mut dyn FnMut(&str)) -> anyhow::Result<Vec<Row>>;

/// Runs an experiment like [`Run`], and also returns its figure as SVG.
pub type Draw = fn(&Path, Effort, &mut dyn FnMut(&str)) -> anyhow::Result<(Vec<Row>, String)>;
