//! Fitting models.

use crate::errors::{file_error, read_error, tagger_error, value_error};
use crate::inputs::{SentenceInputs, tagged_sentences};
use crate::model::Model;
use crate::params::with_params;
use crate::text::{Lexical, Text};
use crate::work::{Caller, Wishes, run, training_error};
use latens::brown::BrownParams;
use latens::corpus::{Corpus, DocumentCorpus, Sentences};
use latens::fhmm::FhmmParams;
use latens::hmm::{HmmInputs, HmmParams};
use latens::lda::{GldaInputs, GldaParams, LdaParams};
use latens::lds::LdsParams;
use latens::model::group::Group;
use latens::model::{self, Checkpoint, Device, Fit, FitError};
use latens::neural::{NeuralInputs, NeuralParams};
use latens::ngram::NgramParams;
use latens::tasks::tagging::{Encoder, TaggerInputs, TaggerParams};
use latens::word2vec::Word2vecParams;
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;

/// What every fit can have besides parameters and data.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Options {
    n_threads: Option<usize>,
    callback: Option<Py<PyAny>>,
    checkpoint: Option<PathBuf>,
    resume: bool,
    cuda: bool,
}

/// A fit without its parameters and data.
struct Session {
    checkpoint: Option<Checkpoint>,
    device: Device,
}

impl Options {
    fn split(self) -> PyResult<(Wishes, Session)> {
        let Options { n_threads, callback, checkpoint, resume, cuda } = self;
        let open = |path: &PathBuf| Checkpoint::open(path).map_err(|error| file_error(&error));
        let opened = match (&checkpoint, resume) {
            (Some(path), true) => Some(open(path)?),
            _ => None,
        };
        let device = if cuda { Device::Cuda } else { Device::Cpu };
        Ok((Wishes { n_threads, callback, checkpoint }, Session { checkpoint: opened, device }))
    }
}

impl Session {
    fn fit<P: Fit<Error = FitError, Model: model::Model>>(
        &self,
        params: P,
        inputs: P::Inputs<'_>,
        data: &P::Data,
        valid: Option<&Sentences>,
        caller: &mut Caller<'_>,
    ) -> PyResult<Box<dyn model::Model>> {
        let mut builder =
            params.with(inputs).device(self.device).watch(|progress| caller.watch(progress));
        if let Some(valid) = valid {
            builder = builder.valid(valid);
        }
        if let Some(checkpoint) = &self.checkpoint {
            builder = builder.checkpoint(checkpoint);
        }
        let model = builder.fit(data).map_err(|error| training_error(&error))?;
        Ok(Box::new(model))
    }
}

/// Parameters of a model of sentences, which fit it with the inputs that it uses.
trait FitSentences: Send {
    fn fit(
        self: Box<Self>,
        corpus: &Corpus,
        valid: Option<&Sentences>,
        inputs: &SentenceInputs,
        session: &Session,
        caller: &mut Caller<'_>,
    ) -> PyResult<Box<dyn model::Model>>;
}

/// Parameters of a model without inputs besides its text.
struct TextOnly<P>(P);

impl<P> FitSentences for TextOnly<P>
where
    P: Fit<Data = Corpus, Error = FitError, Model: model::Model> + Send,
    for<'a> P::Inputs<'a>: Default,
{
    fn fit(
        self: Box<Self>,
        corpus: &Corpus,
        valid: Option<&Sentences>,
        _: &SentenceInputs,
        session: &Session,
        caller: &mut Caller<'_>,
    ) -> PyResult<Box<dyn model::Model>> {
        session.fit(self.0, Default::default(), corpus, valid, caller)
    }
}

impl FitSentences for HmmParams {
    fn fit(
        self: Box<Self>,
        corpus: &Corpus,
        valid: Option<&Sentences>,
        inputs: &SentenceInputs,
        session: &Session,
        caller: &mut Caller<'_>,
    ) -> PyResult<Box<dyn model::Model>> {
        let (clusters, tags) = (inputs.clusters(corpus)?, inputs.tags(corpus)?);
        let group = inputs.group.as_ref();
        let mut inputs = HmmInputs::default();
        (inputs.clusters, inputs.tags) = (clusters.as_ref(), tags.as_ref());
        inputs.group = group.map(|ring| &ring.get().0 as &dyn Group);
        session.fit(*self, inputs, corpus, valid, caller)
    }
}

impl FitSentences for NeuralParams {
    fn fit(
        self: Box<Self>,
        corpus: &Corpus,
        valid: Option<&Sentences>,
        inputs: &SentenceInputs,
        session: &Session,
        caller: &mut Caller<'_>,
    ) -> PyResult<Box<dyn model::Model>> {
        let first_weights = inputs.first_weights()?;
        let mut inputs = NeuralInputs::default();
        inputs.init = first_weights.as_ref();
        session.fit(*self, inputs, corpus, valid, caller)
    }
}

/// Parses the parameters of a model of sentences.
fn sentence_params(kind: &str, json: &str) -> PyResult<Box<dyn FitSentences>> {
    Ok(match kind {
        "brown" => Box::new(TextOnly(with_params(BrownParams::default(), json)?)),
        "ff" => Box::new(with_params(NeuralParams::ff(), json)?),
        "fhmm" => Box::new(TextOnly(with_params(FhmmParams::default(), json)?)),
        "hmm" => Box::new(with_params(HmmParams::default(), json)?),
        "lds" => Box::new(TextOnly(with_params(LdsParams::default(), json)?)),
        "lstm" => Box::new(with_params(NeuralParams::lstm(), json)?),
        "ngram" => Box::new(TextOnly(with_params(NgramParams::default(), json)?)),
        "rnn" => Box::new(with_params(NeuralParams::rnn(), json)?),
        "word2vec" => Box::new(TextOnly(with_params(Word2vecParams::default(), json)?)),
        _ => {
            return Err(PyValueError::new_err(format!("`{kind}` is not a model of sentences")));
        }
    })
}

/// Fits a model of sentences. Text is an iterable or a list of paths.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "called by one Python function, with keywords")]
pub(crate) fn fit_sentences(
    py: Python<'_>,
    kind: &str,
    params: &str,
    preprocessing: &str,
    limits: &str,
    records: Option<&Bound<'_, PyAny>>,
    paths: Vec<PathBuf>,
    valid_records: Option<&Bound<'_, PyAny>>,
    valid_paths: Option<Vec<PathBuf>>,
    inputs: SentenceInputs,
    options: Options,
) -> PyResult<Model> {
    let params = sentence_params(kind, params)?;
    let lexical = Lexical::new(preprocessing, limits, None)?;
    let text = Text::new(records, paths)?;
    let valid = match (valid_records, valid_paths) {
        (None, None) => None,
        (records, paths) => Some(Text::new(records, paths.unwrap_or_default())?),
    };
    let (wishes, session) = options.split()?;
    let model = run(py, wishes, |caller| {
        let mut corpus = text.corpus(&lexical, caller)?;
        if inputs.unknown_words
            && let Some(limited) = corpus.with_unknown_words()
        {
            corpus = limited;
        }
        let valid = valid.map(|text| text.sentences(&corpus.lexicon, caller)).transpose()?;
        params.fit(&corpus, valid.as_ref(), &inputs, &session, caller)
    })?;
    Ok(Model::from(model))
}

/// Parsed parameters of a topic model.
enum TopicParams {
    Lda(LdaParams),
    Glda(GldaParams, Model),
}

impl TopicParams {
    fn new(kind: &str, json: &str, vectors: Option<Model>) -> PyResult<TopicParams> {
        match (kind, vectors) {
            ("lda", None) => Ok(TopicParams::Lda(with_params(LdaParams::default(), json)?)),
            ("glda", Some(vectors)) => {
                Ok(TopicParams::Glda(with_params(GldaParams::default(), json)?, vectors))
            }
            _ => Err(PyValueError::new_err(format!(
                "`{kind}` is not a topic model, or its word vectors are missing"
            ))),
        }
    }

    fn fit(
        self,
        corpus: &DocumentCorpus,
        session: &Session,
        caller: &mut Caller<'_>,
    ) -> PyResult<Box<dyn model::Model>> {
        match self {
            TopicParams::Lda(params) => session.fit(params, (), corpus, None, caller),
            TopicParams::Glda(params, model) => {
                let Some(vectors) = model.get().word_vectors() else {
                    let what = model.get().description();
                    let message = format!("`vectors` is {what}, which has no word vectors");
                    return Err(PyValueError::new_err(message));
                };
                let own = &model.get().lexicon().vocab;
                let (vectors, _) = vectors.for_words(own, &corpus.lexicon.vocab);
                let inputs = GldaInputs::default().vectors(&vectors);
                session.fit(params, inputs, corpus, None, caller)
            }
        }
    }
}

/// Fits a topic model to documents. Text is an iterable or a list of paths.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "called by one Python function, with keywords")]
pub(crate) fn fit_documents(
    py: Python<'_>,
    kind: &str,
    params: &str,
    preprocessing: &str,
    limits: &str,
    cleaning: Option<&str>,
    records: Option<&Bound<'_, PyAny>>,
    paths: Vec<PathBuf>,
    vectors: Option<Model>,
    options: Options,
) -> PyResult<Model> {
    let params = TopicParams::new(kind, params, vectors)?;
    let lexical = Lexical::new(preprocessing, limits, cleaning)?;
    let text = Text::new(records, paths)?;
    let (wishes, session) = options.split()?;
    let model = run(py, wishes, |caller| {
        let corpus = text.documents(&lexical, caller)?;
        params.fit(&corpus, &session, caller)
    })?;
    Ok(Model::from(model))
}

/// Fits a topic model to a document–term matrix in compressed sparse row layout.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "called by one Python function, with keywords")]
pub(crate) fn fit_counts(
    py: Python<'_>,
    kind: &str,
    params: &str,
    words: Vec<String>,
    indptr: PyReadonlyArray1<'_, i64>,
    indices: PyReadonlyArray1<'_, i64>,
    counts: PyReadonlyArray1<'_, u64>,
    vectors: Option<Model>,
    options: Options,
) -> PyResult<Model> {
    let params = TopicParams::new(kind, params, vectors)?;
    let (wishes, session) = options.split()?;
    let (indptr, indices, counts) = (indptr.as_slice()?, indices.as_slice()?, counts.as_slice()?);
    let rows = indptr.windows(2).map(|ends| {
        let range = ends[0] as usize..ends[1] as usize;
        let columns = indices[range.clone()].iter().map(|&column| column as usize);
        columns.zip(counts[range].iter().copied())
    });
    let corpus = DocumentCorpus::from_counts(&words, rows).map_err(|error| read_error(&error))?;
    let model = run(py, wishes, |caller| params.fit(&corpus, &session, caller))?;
    Ok(Model::from(model))
}

/// Fits a tagger to sentences of words and their tags.
#[pyfunction]
pub(crate) fn fit_tagger(
    py: Python<'_>,
    params: &str,
    words: Vec<Vec<String>>,
    tags: Vec<Vec<String>>,
    encoders: Vec<(Model, Option<String>)>,
    options: Options,
) -> PyResult<Model> {
    let params: TaggerParams = with_params(TaggerParams::default(), params)?;
    let text = tagged_sentences(&words, &tags)?;
    let mut inputs = TaggerInputs::default();
    for (model, features) in encoders {
        // The tagger owns its encoders, so it gets a copy.
        let copy = model.copy()?;
        let encoder = Encoder::from_boxed_model(copy, features.as_deref());
        inputs = inputs.encoder(encoder.map_err(|error| value_error(&error))?);
    }
    let (wishes, session) = options.split()?;
    let model = run(py, wishes, |caller| {
        let mut builder = params.with(inputs).watch(|progress| caller.watch(progress));
        if let Some(checkpoint) = &session.checkpoint {
            builder = builder.checkpoint(checkpoint);
        }
        builder.fit(&text).map_err(|error| tagger_error(&error))
    })?;
    Ok(Model::from(Box::new(model) as Box<dyn model::Model>))
}
