//! The program `latens`, which the package brings.

use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs the program with these arguments, its name first, and returns its exit status. Call it once per process: it takes
/// over the signals.
#[pyfunction]
pub(crate) fn run_program(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| latens_cli::main(arguments))
}
