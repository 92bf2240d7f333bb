//! The contents of models: parameters, vectors and counts.

use crate::model::Model;
use crate::work::on_all_cores;
use latens::brown::Brown;
use latens::fhmm::Fhmm;
use latens::hmm::Hmm;
use latens::lda::{Glda, Lda};
use latens::lds::Lds;
use latens::model as base;
use latens::model::Matrix;
use numpy::ndarray::ArrayView2;
use numpy::{Element, IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::borrow::Cow;

/// A look inside.
#[pymethods]
impl Model {
    /// Word vectors, one row per word of the vocabulary. A view of the model's memory where it stores them.
    fn word_vectors<'py>(slf: &Bound<'py, Model>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        word_vectors(slf)
    }

    /// Number of training tokens of each word in each topic: a view of the model's memory, one row per word.
    fn word_topic_counts<'py>(slf: &Bound<'py, Model>) -> PyResult<Bound<'py, PyArray2<u32>>> {
        let base = slf.get().get();
        let Some(lda) = base.downcast_ref::<Lda>() else {
            let message = format!("this is {}, which has no counts of topics", base.description());
            return Err(PyValueError::new_err(message));
        };
        let n_topics = lda.alpha().len();
        view(slf, lda.word_counts(), [lda.word_counts().len() / n_topics, n_topics])
    }

    /// The words that a state of a layer makes likely, with their scores.
    fn layer_words(&self, layer: usize, state: usize, n: usize) -> PyResult<Vec<(&str, f32)>> {
        let Some(fhmm) = self.get().downcast_ref::<Fhmm>() else {
            let message = format!("this is {}, which has no layers", self.get().description());
            return Err(PyValueError::new_err(message));
        };
        let (n_layers, n_states) = (fhmm.n_layers(), fhmm.n_states());
        if layer >= n_layers || state >= n_states {
            let place = format!("state {state} of layer {layer}");
            let message = format!("{place} is out of range: there are {n_layers} × {n_states}");
            return Err(PyValueError::new_err(message));
        }
        Ok(fhmm.top_words(layer, state, n))
    }

    /// A part of the model as an array or JSON.
    fn inside<'py>(&self, py: Python<'py>, name: &str, arg: usize) -> PyResult<Bound<'py, PyAny>> {
        let find = || Python::attach(|py| part(py, self.get(), name, arg).map(Bound::unbind));
        Ok(on_all_cores(py, find)??.into_bound(py))
    }
}

/// The word vectors of a model as an array: a read-only view if the model stores them, otherwise a copy.
fn word_vectors<'py>(model: &Bound<'py, Model>) -> PyResult<Bound<'py, PyArray2<f32>>> {
    let py = model.py();
    let base = model.get().get();
    match on_all_cores(py, || base.word_vectors())? {
        None => Err(PyValueError::new_err(format!(
            "this is {}, which has no word vectors",
            base.description()
        ))),
        Some(Cow::Borrowed(vectors)) => {
            view(model, vectors.values(), [vectors.n_words(), vectors.dim()])
        }
        Some(Cow::Owned(vectors)) => {
            let array = PyArray1::from_slice(py, vectors.values());
            array.reshape([vectors.n_words(), vectors.dim()])
        }
    }
}

/// A read-only view of numbers that the model owns.
#[expect(unsafe_code, reason = "the array borrows numbers that the model owns")]
fn view<'py, T: Element>(
    model: &Bound<'py, Model>,
    values: &[T],
    shape: [usize; 2],
) -> PyResult<Bound<'py, PyArray2<T>>> {
    let view = ArrayView2::from_shape(shape, values).expect("rows of equal length");
    // SAFETY: the array keeps a reference to the model, which owns the numbers and never changes them.
    let array = unsafe { PyArray2::borrow_from_array(&view, model.clone().into_any()) };
    // A model must not change under the hands of its other users.
    array.call_method("setflags", (false,), None)?;
    Ok(array)
}

/// A part of a model by name. `arg` is an index for parts that have several, such as the rows of a transition matrix.
fn part<'py>(
    py: Python<'py>,
    model: &dyn base::Model,
    name: &str,
    arg: usize,
) -> PyResult<Bound<'py, PyAny>> {
    if name == "params" {
        return Ok(model.params_json().to_string().into_pyobject(py)?.into_any());
    }
    let found = if let Some(hmm) = model.downcast_ref::<Hmm>() {
        hmm_part(py, hmm, name, arg)?
    } else if let Some(fhmm) = model.downcast_ref::<Fhmm>() {
        fhmm_part(py, fhmm, name)?
    } else if let Some(lda) = model.downcast_ref::<Lda>() {
        lda_part(py, lda, name)?
    } else if let Some(glda) = model.downcast_ref::<Glda>() {
        glda_part(py, glda, name)?
    } else if let Some(lds) = model.downcast_ref::<Lds>() {
        lds_part(py, lds, name)?
    } else if let Some(brown) = model.downcast_ref::<Brown>() {
        brown_part(py, brown, name)?
    } else {
        None
    };
    found.ok_or_else(|| {
        PyValueError::new_err(format!("this is {}, which has no `{name}`", model.description()))
    })
}

type Part<'py> = PyResult<Option<Bound<'py, PyAny>>>;

fn array<'py, T: Element>(py: Python<'py>, values: Vec<T>) -> Part<'py> {
    Ok(Some(values.into_pyarray(py).into_any()))
}

fn matrix<'py, T: Element + Clone>(py: Python<'py>, matrix: Matrix<T>) -> Part<'py> {
    let shape = [matrix.n_rows(), matrix.n_columns()];
    Ok(Some(matrix.into_vec().into_pyarray(py).reshape(shape)?.into_any()))
}

fn check_state(hmm: &Hmm, state: usize) -> PyResult<()> {
    if state < hmm.n_states() {
        return Ok(());
    }
    let message = format!("state {state} is out of range: there are {}", hmm.n_states());
    Err(PyValueError::new_err(message))
}

fn hmm_part<'py>(py: Python<'py>, hmm: &Hmm, name: &str, state: usize) -> Part<'py> {
    match name {
        "n_states" => Ok(Some(hmm.n_states().into_pyobject(py)?.into_any())),
        "start" => array(py, hmm.start().to_vec()),
        "stationary" => array(py, hmm.stationary()),
        "transition" => {
            check_state(hmm, state)?;
            array(py, hmm.transition(state))
        }
        "emission" => {
            check_state(hmm, state)?;
            array(py, hmm.emission(state))
        }
        _ => Ok(None),
    }
}

fn fhmm_part<'py>(py: Python<'py>, fhmm: &Fhmm, name: &str) -> Part<'py> {
    match name {
        "n_layers" => Ok(Some(fhmm.n_layers().into_pyobject(py)?.into_any())),
        "n_states" => Ok(Some(fhmm.n_states().into_pyobject(py)?.into_any())),
        _ => Ok(None),
    }
}

fn lda_part<'py>(py: Python<'py>, lda: &Lda, name: &str) -> Part<'py> {
    match name {
        "alpha" => array(py, lda.alpha().to_vec()),
        "topic_sizes" => array(py, lda.topic_sizes()),
        "components" => {
            let (n_topics, n_words) = (lda.alpha().len(), lda.lexicon().vocab.len());
            let prob = |i: usize| lda.prob(i / n_words, latens::corpus::WordId::from(i % n_words));
            matrix(
                py,
                Matrix::from_vec(n_topics, n_words, (0..n_topics * n_words).map(prob).collect()),
            )
        }
        _ => Ok(None),
    }
}

fn glda_part<'py>(py: Python<'py>, glda: &Glda, name: &str) -> Part<'py> {
    match name {
        "alpha" => array(py, glda.alpha().to_vec()),
        "topic_sizes" => array(py, glda.topic_sizes()),
        "means" => {
            let n_topics = glda.alpha().len();
            let means = (0..n_topics).flat_map(|topic| glda.mean(topic)).copied().collect();
            matrix(py, Matrix::from_vec(n_topics, glda.vectors().dim(), means))
        }
        _ => Ok(None),
    }
}

fn lds_part<'py>(py: Python<'py>, lds: &Lds, name: &str) -> Part<'py> {
    match name {
        "transition_matrix" => matrix(py, lds.transition()),
        "observation" => matrix(py, lds.observation()),
        _ => Ok(None),
    }
}

fn brown_part<'py>(py: Python<'py>, brown: &Brown, name: &str) -> Part<'py> {
    match name {
        "paths" => {
            let clusters = brown.clusters();
            let vocab = &brown.lexicon().vocab;
            let path = |id| clusters.cluster(id).map(|cluster| clusters.path(cluster));
            let paths: Vec<Option<&str>> =
                (0..vocab.len()).map(|id| path(latens::corpus::WordId::from(id))).collect();
            Ok(Some(paths.into_pyobject(py)?.into_any()))
        }
        _ => Ok(None),
    }
}
