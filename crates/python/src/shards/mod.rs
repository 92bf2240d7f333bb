//! Learning from shards. Broadcasts and statistics are arrays of bytes, which engines share without copies.

mod ring;

use crate::errors::{message, value_error};
use crate::model::Model;
use crate::text::Lexical;
use crate::work::{Wishes, run};
use latens::brown::Brown;
use latens::corpus::{Inputs, Lexicon, Preprocessing, Vocab, VocabLimits};
use latens::model::FitError;
use latens::model::shards::{
    Arrays, Broadcast, EncodedPart, Part, Round, ShardError, ShardKind, Statistics,
};
use latens::tasks::tagging::FeatureTagger;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use serde_json::json;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

pub(crate) use ring::{Ring, RingSeat};

type Bytes<'py> = Bound<'py, PyArray1<u8>>;
type Given<'py> = PyReadonlyArray1<'py, u8>;

/// The text of a shard, encoded.
#[pyclass(frozen, module = "latens._latens")]
pub(crate) struct ShardWorker {
    part: EncodedPart,
    kind: &'static dyn ShardKind,
    n_threads: Option<usize>,
}

#[pymethods]
impl ShardWorker {
    /// Reads and encodes the text of a shard, which is in files or in memory.
    #[new]
    fn new(
        py: Python<'_>,
        broadcast: Given<'_>,
        shard: usize,
        lines: Option<Vec<String>>,
        paths: Vec<PathBuf>,
        n_threads: Option<usize>,
    ) -> PyResult<ShardWorker> {
        let broadcast = read_broadcast(&broadcast)?;
        let kind = find(broadcast.kind())?;
        let part = match lines {
            Some(lines) => Part::Lines(lines),
            None => Part::Files(Box::new(Inputs::new(paths))),
        };
        let part = run(py, wishes(n_threads), |_| {
            kind.read(&broadcast, shard, &part).map_err(|error| shard_error(&error))
        })?;
        Ok(ShardWorker { part, kind, n_threads })
    }
}

/// A round in a worker: the sum of the statistics of its shards, which stays in memory until all of them are computed.
#[pyclass(frozen, module = "latens._latens")]
pub(crate) struct ShardRound {
    broadcast: Broadcast,
    sums: Mutex<Option<Statistics>>,
}

#[pymethods]
impl ShardRound {
    /// Reads a broadcast.
    #[new]
    fn new(broadcast: Given<'_>) -> PyResult<ShardRound> {
        Ok(ShardRound { broadcast: read_broadcast(&broadcast)?, sums: Mutex::new(None) })
    }

    /// Adds the statistics of a shard. Returns what it needs in the next round.
    fn add<'py>(
        &self,
        py: Python<'py>,
        worker: &ShardWorker,
        carry: Option<Given<'_>>,
    ) -> PyResult<Option<Bytes<'py>>> {
        let previous = carry.map(|carry| read_statistics(&carry)).transpose()?;
        let carry = run(py, wishes(worker.n_threads), |_| {
            let ShardWorker { part, kind, .. } = worker;
            let mut statistics = kind
                .statistics(&self.broadcast, part, previous.as_ref())
                .map_err(|error| shard_error(&error))?;
            let carry = statistics.take_carry().map(|carry| carry.to_bytes());
            let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
            let parts = sums.take().into_iter().chain([statistics]).collect();
            *sums = Some(kind.merge(parts).map_err(|error| shard_error(&error))?);
            Ok(carry)
        })?;
        Ok(carry.map(|carry| carry.into_pyarray(py)))
    }

    /// Returns the sum of the statistics of all shards so far, and forgets it.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bytes<'py>> {
        let sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner).take();
        let sums = sums.ok_or_else(|| PyValueError::new_err("no shard was added"))?;
        Ok(py.detach(|| sums.to_bytes()).into_pyarray(py))
    }
}

/// The first broadcast of a run for the vocabulary.
#[pyfunction]
pub(crate) fn shard_begin_vocab<'py>(
    py: Python<'py>,
    preprocessing: &str,
    limits: &str,
    documents: bool,
    n_shards: usize,
) -> PyResult<Bytes<'py>> {
    let Lexical { preprocessing, limits, .. } = Lexical::new(preprocessing, limits, None)?;
    let lexicon = Lexicon::new(preprocessing, limits, Vocab::from_counts([], &limits));
    let params = json!({ "documents": documents });
    let broadcast = find("vocab")?.begin(params, lexicon, n_shards, Arrays::new());
    Ok(broadcast.map_err(|error| shard_error(&error))?.to_bytes().into_pyarray(py))
}

/// The first broadcast of a run for a model. `words` are the broadcast and the merged statistics of the vocabulary.
#[pyfunction]
pub(crate) fn shard_begin<'py>(
    py: Python<'py>,
    kind: &str,
    params: &str,
    words: (Given<'_>, Given<'_>),
    clusters: Option<Model>,
    vectors: Option<Model>,
) -> PyResult<Bytes<'py>> {
    let broadcast = read_broadcast(&words.0)?;
    let updated = find("vocab")?.update(&broadcast, read_statistics(&words.1)?);
    let Round::Lexicon(lexicon) = updated.map_err(|error| shard_error(&error))? else {
        return Err(PyValueError::new_err("`words` must be a run for the vocabulary"));
    };
    let params = serde_json::from_str(params).map_err(|error| value_error(&error))?;
    let mut inputs = Arrays::new();
    if let Some(model) = clusters {
        let Some(brown) = model.get().downcast_ref::<Brown>() else {
            return Err(PyValueError::new_err("`clusters` must be a Brown clustering"));
        };
        let clusters = brown.clusters().for_words(&brown.lexicon().vocab, &lexicon.vocab);
        let of_word: Vec<u32> =
            clusters.of_word().iter().map(|cluster| cluster.unwrap_or(u32::MAX)).collect();
        inputs = inputs.with("word_clusters", of_word);
    }
    if let Some(model) = vectors {
        let Some(vectors) = model.get().word_vectors() else {
            return Err(PyValueError::new_err("`vectors` must be a model with word vectors"));
        };
        let (vectors, _) = vectors.for_words(&model.get().lexicon().vocab, &lexicon.vocab);
        let dim = vec![vectors.dim() as u64];
        inputs = inputs.with("dim", dim).with("vectors", vectors.values().to_vec());
    }
    let begun = find(kind)?.begin(params, *lexicon, broadcast.n_shards(), inputs);
    Ok(begun.map_err(|error| shard_error(&error))?.to_bytes().into_pyarray(py))
}

/// The first broadcast of a run for a tagger, whose shards are lines of words and tags.
#[pyfunction]
pub(crate) fn shard_begin_tagger<'py>(
    py: Python<'py>,
    params: &str,
    n_shards: usize,
) -> PyResult<Bytes<'py>> {
    let limits = VocabLimits::default();
    let none = Vocab::from_counts([], &limits);
    let lexicon = Lexicon::new(Preprocessing::default(), limits, none);
    let params = serde_json::from_str(params).map_err(|error| value_error(&error))?;
    let begun = find(FeatureTagger::KIND)?.begin(params, lexicon, n_shards, Arrays::new());
    Ok(begun.map_err(|error| shard_error(&error))?.to_bytes().into_pyarray(py))
}

/// What workers need of a broadcast, and facts about it as JSON.
#[pyfunction]
pub(crate) fn shard_broadcast<'py>(
    py: Python<'py>,
    broadcast: Given<'_>,
) -> PyResult<(Bytes<'py>, String)> {
    let broadcast = read_broadcast(&broadcast)?;
    let facts = json!({
        "kind": broadcast.kind(),
        "round": broadcast.round(),
        "n_rounds": broadcast.n_rounds(),
        "n_shards": broadcast.n_shards(),
        "metrics": broadcast.metrics(),
        "version": format!("{:016x}", broadcast.version()),
    });
    Ok((broadcast.to_worker_bytes().into_pyarray(py), facts.to_string()))
}

/// Adds up statistics of shards.
#[pyfunction]
pub(crate) fn shard_merge<'py>(py: Python<'py>, parts: Vec<Given<'_>>) -> PyResult<Bytes<'py>> {
    let parts = parts.iter().map(read_statistics).collect::<PyResult<Vec<_>>>()?;
    let kind = find(parts.first().map_or("", |part| part.kind()))?;
    let merged = run(py, wishes(Some(1)), |_| {
        kind.merge(parts).map(|sum| sum.to_bytes()).map_err(|error| shard_error(&error))
    })?;
    Ok(merged.into_pyarray(py))
}

/// The next broadcast, or the model after the last round.
#[pyfunction]
pub(crate) fn shard_update<'py>(
    py: Python<'py>,
    broadcast: Given<'_>,
    statistics: Given<'_>,
    n_threads: Option<usize>,
) -> PyResult<(Option<Bytes<'py>>, Option<Model>)> {
    let broadcast = read_broadcast(&broadcast)?;
    let statistics = read_statistics(&statistics)?;
    let kind = find(broadcast.kind())?;
    let updated = run(py, wishes(n_threads), |_| {
        kind.update(&broadcast, statistics).map_err(|error| shard_error(&error))
    })?;
    match updated {
        Round::Next(next) => Ok((Some(next.to_bytes().into_pyarray(py)), None)),
        Round::Model(model) => Ok((None, Some(Model::from(model)))),
        Round::Lexicon(_) => Err(PyValueError::new_err("pass the vocabulary to `shard_begin`")),
    }
}

fn wishes(n_threads: Option<usize>) -> Wishes {
    Wishes { n_threads, ..Wishes::default() }
}

fn find(kind: &str) -> PyResult<&'static dyn ShardKind> {
    latens::shard_kind(kind).map_err(|error| shard_error(&error))
}

fn read_broadcast(bytes: &Given<'_>) -> PyResult<Broadcast> {
    Broadcast::from_bytes(bytes.as_slice()?, "broadcast").map_err(|error| value_error(&error))
}

fn read_statistics(bytes: &Given<'_>) -> PyResult<Statistics> {
    Statistics::from_bytes(bytes.as_slice()?, "statistics").map_err(|error| value_error(&error))
}

fn shard_error(error: &ShardError) -> PyErr {
    let text = message(error);
    match error {
        ShardError::Text { source: latens::corpus::ReadError::Io { .. }, .. } => {
            PyOSError::new_err(text)
        }
        ShardError::Update(FitError::Step { .. }) => PyRuntimeError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}
