//! Errors of the library as Python exceptions with the same text.

use latens::corpus::ReadError;
use latens::model::{FileError, FitError};
use latens::tasks::tagging::TaggerError;
use pyo3::create_exception;
use pyo3::exceptions::{PyConnectionAbortedError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::error::Error;
use std::io;

create_exception!(
    latens,
    ModelFileError,
    PyValueError,
    "The file is not a model, is damaged, or cannot be opened by this version."
);

/// The message of an error and of its causes.
pub(crate) fn message(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// Invalid parameters and data.
pub(crate) fn value_error(error: &dyn Error) -> PyErr {
    PyValueError::new_err(message(error))
}

pub(crate) fn read_error(error: &ReadError) -> PyErr {
    match error {
        ReadError::Io { .. } => PyOSError::new_err(message(error)),
        _ => value_error(error),
    }
}

pub(crate) fn file_error(error: &FileError) -> PyErr {
    match error {
        FileError::Storage(_) => PyOSError::new_err(message(error)),
        _ => ModelFileError::new_err(message(error)),
    }
}

pub(crate) fn fit_error(error: &FitError) -> PyErr {
    match error {
        FitError::Step { source, .. } if is_lost(&**source) => {
            PyConnectionAbortedError::new_err(message(error))
        }
        FitError::Step { .. } | FitError::Device { .. } => PyRuntimeError::new_err(message(error)),
        _ => value_error(error),
    }
}

/// Whether another process of a group has ended.
fn is_lost(error: &(dyn Error + 'static)) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::ConnectionAborted)
}

pub(crate) fn tagger_error(error: &TaggerError) -> PyErr {
    match error {
        TaggerError::Fit(error) => fit_error(error),
        _ => value_error(error),
    }
}
