//! The extension module `latens._latens`: conversions between Python and the library.
//!
//! Estimators, documentation and everything else that Python users see is in `python/latens`. This crate has no numeric
//! code. Each call runs in its own thread pool with the GIL released (`work.rs`), so that Ctrl-C is
//! handled, no thread outlives a call, and forked processes keep working.

mod arrays;
mod control;
mod errors;
mod fit;
mod inputs;
mod inside;
mod model;
mod params;
mod program;
mod shards;
mod text;
mod work;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use std::sync::OnceLock;

/// The extension module. An interpreter without the GIL takes it back: the estimators in Python rely on it.
#[pymodule(gil_used = true)]
fn _latens(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("ModelFileError", module.py().get_type::<errors::ModelFileError>())?;
    module.add_function(wrap_pyfunction!(check_interpreter, module)?)?;
    module.add_class::<model::Model>()?;
    module.add_class::<control::Guide>()?;
    module.add_function(wrap_pyfunction!(fit::fit_sentences, module)?)?;
    module.add_function(wrap_pyfunction!(fit::fit_documents, module)?)?;
    module.add_function(wrap_pyfunction!(fit::fit_counts, module)?)?;
    module.add_function(wrap_pyfunction!(fit::fit_tagger, module)?)?;
    module.add_function(wrap_pyfunction!(arrays::vectors_from_arrays, module)?)?;
    module.add_function(wrap_pyfunction!(arrays::hmm_from_arrays, module)?)?;
    module.add_class::<shards::ShardWorker>()?;
    module.add_class::<shards::ShardRound>()?;
    module.add_class::<shards::RingSeat>()?;
    module.add_class::<shards::Ring>()?;
    module.add_function(wrap_pyfunction!(shards::shard_begin_vocab, module)?)?;
    module.add_function(wrap_pyfunction!(shards::shard_begin, module)?)?;
    module.add_function(wrap_pyfunction!(shards::shard_begin_tagger, module)?)?;
    module.add_function(wrap_pyfunction!(shards::shard_broadcast, module)?)?;
    module.add_function(wrap_pyfunction!(shards::shard_merge, module)?)?;
    module.add_function(wrap_pyfunction!(shards::shard_update, module)?)?;
    module.add_function(wrap_pyfunction!(program::run_program, module)?)?;
    module.add_function(wrap_pyfunction!(params::default_params, module)?)?;
    module.add_function(wrap_pyfunction!(model::open, module)?)?;
    module.add_function(wrap_pyfunction!(model::from_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(text::embedded_text, module)?)?;
    Ok(())
}

/// Fails in any interpreter of this process but the first one that calls it. Types are shared by all interpreters, and
/// Python would free the objects of one in another. Each interpreter has its own `sys.modules`.
#[pyfunction]
fn check_interpreter(modules: &Bound<'_, PyAny>) -> PyResult<()> {
    static FIRST: OnceLock<usize> = OnceLock::new();
    let this = modules.as_ptr() as usize;
    if *FIRST.get_or_init(|| this) == this {
        return Ok(());
    }
    Err(PyImportError::new_err("latens does not support subinterpreters: use threads or processes"))
}
