//! Errors of queries, and of files to show.

use latens::model::file::FileError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// A query that cannot be answered.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ViewError {
    /// There is no such model or log.
    #[error("there is no item {item}")]
    UnknownItem {
        /// Index of the item.
        item: usize,
    },
    /// The model has no such view.
    #[error("`{view}` is not a view of this item")]
    UnknownView {
        /// Name of the view.
        view: String,
    },
    /// The arguments are invalid: a missing one, a wrong type, a number out of range.
    #[error("invalid arguments: {problem}")]
    Arguments {
        /// What is wrong.
        problem: String,
    },
    /// The text is longer than what is processed interactively.
    #[error("the text has {found} {unit}, and at most {max} are shown")]
    TooLong {
        /// Number of characters or words.
        found: usize,
        /// Maximum number.
        max: usize,
        /// What is counted.
        unit: &'static str,
    },
    /// The model has no answer for this input.
    #[error("{problem}")]
    NoAnswer {
        /// Why.
        problem: String,
    },
}

impl ViewError {
    pub(crate) fn arguments(problem: impl ToString) -> ViewError {
        ViewError::Arguments { problem: problem.to_string() }
    }

    pub(crate) fn no_answer(problem: impl ToString) -> ViewError {
        ViewError::NoAnswer { problem: problem.to_string() }
    }
}

/// A file that cannot be shown.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// It is neither a model nor a log of a training run.
    #[error("`{}` is neither a model nor a training log", path.display())]
    Neither {
        /// The file.
        path: PathBuf,
    },
    /// It is a model file that cannot be opened.
    #[error(transparent)]
    Model(#[from] FileError),
    /// It cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}
