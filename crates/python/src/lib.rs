//! The extension module `latens._latens`: conversions between Python and the library.
//!
//! Estimators, documentation and everything else that Python users see is in `python/latens`. This crate has no numeric
//! code. Each call runs in its own thread pool with the GIL released (`work.rs`), so that Ctrl-C is
//! handled, no thread outlives a call, and forked processes keep working.

mod errors;
mod fit;
mod inside;
mod model;
mod params;
mod text;
mod work;

use pyo3::prelude::*;

/// The extension module.
#[pymodule]
fn _latens(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("ModelFileError", module.py().get_type::<errors::ModelFileError>())?;
    module.add_class::<model::Model>()?;
    module.add_function(wrap_pyfunction!(fit::fit_sentences, module)?)?;
    module.add_function(wrap_pyfunction!(fit::fit_documents, module)?)?;
    module.add_function(wrap_pyfunction!(fit::fit_counts, module)?)?;
    module.add_function(wrap_pyfunction!(fit::fit_tagger, module)?)?;
    module.add_function(wrap_pyfunction!(params::default_params, module)?)?;
    module.add_function(wrap_pyfunction!(model::open, module)?)?;
    module.add_function(wrap_pyfunction!(model::from_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(text::embedded_text, module)?)?;
    Ok(())
}
