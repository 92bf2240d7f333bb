//! Models from arrays of other programs.

use crate::errors::value_error;
use crate::model::Model;
use crate::work::on_all_cores;
use latens::corpus::{Lexicon, Preprocessing, Vocab, VocabLimits};
use latens::hmm::Hmm;
use latens::model::{self, Vectors, WordVectors};
use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The vocabulary of these words, in this order. The first two must be `<unk>` and `<eos>`.
fn lexicon(words: &[String], counts: Vec<u64>) -> PyResult<Lexicon> {
    for (idx, word) in words.iter().enumerate() {
        if word.is_empty() || word.contains(['\t', '\n', '\r', '\0']) {
            let message = format!("word {idx} is empty or contains a tab, a line break or NUL");
            return Err(PyValueError::new_err(message));
        }
    }
    let vocab = Vocab::from_parts(words, counts).map_err(|error| value_error(&error))?;
    Ok(Lexicon::new(Preprocessing::default(), VocabLimits::default(), vocab))
}

/// Word vectors, one row per word.
#[pyfunction]
pub(crate) fn vectors_from_arrays(
    py: Python<'_>,
    words: Vec<String>,
    counts: Vec<u64>,
    vectors: PyReadonlyArray2<'_, f32>,
) -> PyResult<Model> {
    let lexicon = lexicon(&words, counts)?;
    let (n_rows, dim) = (vectors.shape()[0], vectors.shape()[1]);
    if n_rows != words.len() {
        let message = format!("there are {} words, but {n_rows} vectors", words.len());
        return Err(PyValueError::new_err(message));
    }
    let values = vectors.as_slice()?;
    let vectors = on_all_cores(py, || WordVectors::new(dim, values.to_vec()))?;
    let vectors = vectors.map_err(|error| value_error(&error))?;
    let model: Box<dyn model::Model> = Box::new(Vectors::new(lexicon, vectors));
    Ok(Model::from(model))
}

/// A hidden Markov model of these probabilities.
#[pyfunction]
pub(crate) fn hmm_from_arrays(
    py: Python<'_>,
    words: Vec<String>,
    counts: Vec<u64>,
    start: PyReadonlyArray1<'_, f32>,
    transition: PyReadonlyArray2<'_, f32>,
    emission: PyReadonlyArray2<'_, f32>,
) -> PyResult<Model> {
    let lexicon = lexicon(&words, counts)?;
    let (start, transition, emission) =
        (start.as_slice()?.to_vec(), transition.as_slice()?, emission.as_slice()?);
    let hmm = on_all_cores(py, || Hmm::from_probabilities(lexicon, start, transition, emission))?;
    let model: Box<dyn model::Model> = Box::new(hmm.map_err(|error| value_error(&error))?);
    Ok(Model::from(model))
}
