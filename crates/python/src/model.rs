//! A fitted model in Python.

use crate::errors::{file_error, value_error};
use crate::text::Text;
use crate::work::{Wishes, on_all_cores, run};
use latens::corpus::WordId;
use latens::lda::{Completion, Glda, InferenceParams, Lda, MoreVectors, Topics};
use latens::model::{
    LanguageModel, Params, TagError, TagInput, TagOutputs, Tagged, Tagger, TopicModel, WordVectors,
};
use latens::tasks::{SampleOptions, perplexity, sample_sentences};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use rayon::prelude::*;
use serde_json::Value;
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

/// A fitted model of any kind. Estimators in `python/latens` give its methods their public form.
#[pyclass(frozen, module = "latens._latens")]
#[derive(Clone)]
pub(crate) struct Model(Arc<dyn latens::model::Model>);

impl<'a, 'py> FromPyObject<'a, 'py> for Model {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Model> {
        Ok(object.cast::<Model>()?.get().clone())
    }
}

impl From<Box<dyn latens::model::Model>> for Model {
    fn from(model: Box<dyn latens::model::Model>) -> Model {
        Model(model.into())
    }
}

/// Opens a model file.
#[pyfunction]
pub(crate) fn open(py: Python<'_>, path: PathBuf) -> PyResult<Model> {
    let model = on_all_cores(py, || latens::open(path))?;
    model.map(Model::from).map_err(|error| file_error(&error))
}

/// Opens the bytes of a model file.
#[pyfunction]
pub(crate) fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Model> {
    let model = on_all_cores(py, || latens::from_bytes(bytes))?;
    model.map(Model::from).map_err(|error| file_error(&error))
}

impl Model {
    pub(crate) fn get(&self) -> &dyn latens::model::Model {
        &*self.0
    }

    /// A copy of the model that shares nothing with it.
    pub(crate) fn copy(&self) -> PyResult<Box<dyn latens::model::Model>> {
        latens::from_bytes(&self.0.to_bytes()).map_err(|error| file_error(&error))
    }

    fn lda(&self) -> PyResult<&Lda> {
        let lda = self.0.downcast_ref::<Lda>();
        lda.ok_or_else(|| self.without("which does not predict words of documents"))
    }

    /// Documents as ids of words with offsets, checked.
    fn documents_of_ids(
        &self,
        indptr: &PyReadonlyArray1<'_, i64>,
        ids: &PyReadonlyArray1<'_, u32>,
    ) -> PyResult<(Vec<usize>, Vec<WordId>)> {
        let n_words = self.0.lexicon().vocab.len();
        let (indptr, ids) = (indptr.as_slice()?, ids.as_slice()?);
        let is_valid = indptr.is_sorted()
            && indptr.first() == Some(&0)
            && indptr.last() == Some(&(ids.len() as i64))
            && ids.iter().all(|&id| (id as usize) < n_words);
        if !is_valid {
            return Err(PyValueError::new_err("word ids or offsets are out of range"));
        }
        let offsets = indptr.iter().map(|&at| at as usize).collect();
        Ok((offsets, ids.iter().map(|&id| WordId(id)).collect()))
    }

    fn without(&self, what: &str) -> PyErr {
        PyValueError::new_err(format!("this is {}, {what}", self.0.description()))
    }

    fn language_model(&self) -> PyResult<&dyn LanguageModel> {
        let missing = || self.without("which does not assign probabilities to text");
        self.0.as_language_model().ok_or_else(missing)
    }

    /// Gaussian LDA, and vectors of words that may be outside its training documents.
    fn with_vectors<'a>(&'a self, more: &'a Model) -> PyResult<(&'a Glda, Cow<'a, WordVectors>)> {
        let glda = self.0.downcast_ref::<Glda>();
        let glda = glda.ok_or_else(|| self.without("which does not use word vectors"))?;
        let vectors = more.0.word_vectors();
        let vectors = vectors.ok_or_else(|| more.without("which has no word vectors"))?;
        glda.check_vectors(&vectors).map_err(|error| value_error(&error))?;
        Ok((glda, vectors))
    }

    fn topic_model(&self) -> PyResult<&dyn TopicModel> {
        self.0.as_topic_model().ok_or_else(|| self.without("which has no topics"))
    }

    fn tagger(&self) -> PyResult<Box<dyn Tagger + '_>> {
        self.0.as_tagger().ok_or_else(|| self.without("which does not assign tags"))
    }
}

fn wishes(n_threads: Option<usize>) -> Wishes {
    Wishes { n_threads, ..Wishes::default() }
}

/// Every model.
#[pymethods]
impl Model {
    /// The kind of model: `hmm`, `lda` …
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    /// A noun phrase: "an n-gram language model".
    #[getter]
    fn description(&self) -> &'static str {
        self.0.description()
    }

    /// Facts about the training run, as JSON.
    #[getter]
    fn facts(&self) -> String {
        Value::Object(self.0.facts().clone()).to_string()
    }

    /// Preprocessing, as JSON.
    #[getter]
    fn preprocessing(&self) -> String {
        serde_json::to_string(&self.0.lexicon().preprocessing).expect("plain data")
    }

    /// Limits of the vocabulary, as JSON.
    #[getter]
    fn limits(&self) -> String {
        serde_json::to_string(&self.0.lexicon().limits).expect("plain data")
    }

    /// Cleaning of documents, as JSON; `null` if nothing is left out.
    #[getter]
    fn cleaning(&self) -> String {
        let cleaning = &self.0.lexicon().cleaning;
        let found = (!cleaning.is_empty()).then_some(cleaning);
        serde_json::to_string(&found).expect("plain data")
    }

    /// The words of the vocabulary in the order of their ids.
    fn words(&self) -> Vec<&str> {
        self.0.lexicon().vocab.words().collect()
    }

    /// The training counts of all words.
    fn counts<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        PyArray1::from_slice(py, self.0.lexicon().vocab.counts())
    }

    /// The roles of the model.
    fn roles(&self) -> Vec<&'static str> {
        let roles = [
            ("language model", self.0.as_language_model().is_some()),
            ("token encoder", !self.0.feature_kinds().is_empty()),
            ("topic model", self.0.as_topic_model().is_some()),
            ("tagger", self.0.as_tagger().is_some()),
            ("word vectors", self.0.word_vectors().is_some()),
        ];
        roles.into_iter().filter(|(_, has)| *has).map(|(name, _)| name).collect()
    }

    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.0.save(&path)).map_err(|error| file_error(&error))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes = py.detach(|| self.0.to_bytes());
        PyBytes::new(py, &bytes)
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let function = py.import("latens._latens")?.getattr("from_bytes")?;
        Ok((function, PyTuple::new(py, [self.to_bytes(py)])?))
    }
}

/// Language models.
#[pymethods]
impl Model {
    /// Natural logarithm of the probability of a text, its number of tokens, and of unknown words.
    fn perplexity(
        &self,
        py: Python<'_>,
        records: Option<&Bound<'_, PyAny>>,
        paths: Vec<PathBuf>,
        n_threads: Option<usize>,
    ) -> PyResult<(f64, usize, usize)> {
        let text = Text::new(records, paths)?;
        let model = self.language_model()?;
        run(py, wishes(n_threads), |caller| {
            let sentences = text.sentences(self.0.lexicon(), caller)?;
            let found = perplexity(model, &sentences);
            Ok((found.log_prob, found.tokens, found.oov))
        })
    }

    /// Log-probability of each token, the number of tokens of each sentence (with its end), and the ids.
    #[expect(clippy::type_complexity, reason = "three arrays")]
    fn score_tokens<'py>(
        &self,
        py: Python<'py>,
        records: Option<&Bound<'py, PyAny>>,
        paths: Vec<PathBuf>,
        n_threads: Option<usize>,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u32>>)>
    {
        let text = Text::new(records, paths)?;
        let model = self.language_model()?;
        let (scores, lengths, ids) = run(py, wishes(n_threads), |caller| {
            let sentences = text.sentences(self.0.lexicon(), caller)?;
            let lengths: Vec<u64> = sentences.iter().map(|s| s.len() as u64).collect();
            let ids: Vec<u32> = sentences.tokens().iter().map(|id| id.0).collect();
            let scores: Vec<f64> = if model.forgets_sentences() {
                let all: Vec<&[WordId]> = sentences.iter().collect();
                let score = |sentence: &&[WordId]| {
                    let mut scorer = model.scorer();
                    sentence.iter().map(|&word| scorer.read(word)).collect::<Vec<_>>()
                };
                all.par_iter().flat_map_iter(score).collect()
            } else {
                let mut scorer = model.scorer();
                sentences.tokens().iter().map(|&word| scorer.read(word)).collect()
            };
            Ok((scores, lengths, ids))
        })?;
        Ok((scores.into_pyarray(py), lengths.into_pyarray(py), ids.into_pyarray(py)))
    }

    /// The probabilities of all words after a text.
    fn next_probs<'py>(&self, py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let model = self.language_model()?;
        let probs = on_all_cores(py, || {
            let mut probs = vec![0.0; model.n_words()];
            let mut scorer = model.scorer();
            for word in self.0.lexicon().ids(text) {
                scorer.read(word);
            }
            scorer.next_log_probs(&mut probs);
            probs.iter_mut().for_each(|p| *p = p.exp());
            probs
        })?;
        Ok(probs.into_pyarray(py))
    }

    /// The ids of the words of a text.
    fn ids(&self, text: &str) -> Vec<u32> {
        self.0.lexicon().ids(text).into_iter().map(|word| word.0).collect()
    }

    /// Sampled sentences.
    fn sample(
        &self,
        py: Python<'_>,
        n: usize,
        max_words: usize,
        seed: u64,
    ) -> PyResult<Vec<Vec<&str>>> {
        let model = self.language_model()?;
        let vocab = &self.0.lexicon().vocab;
        let mut options = SampleOptions::default();
        options.max_words = max_words;
        run(py, wishes(None), |caller| {
            let mut sentences = Vec::new();
            let receive = |next: Vec<Vec<WordId>>| {
                let words = |ids: Vec<WordId>| ids.into_iter().map(|id| vocab.word(id)).collect();
                sentences.extend(next.into_iter().map(words));
                match caller.check() {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(interrupt) => ControlFlow::Break(interrupt),
                }
            };
            match sample_sentences(model, &[], &options, n, seed, receive) {
                ControlFlow::Continue(()) => Ok(sentences),
                ControlFlow::Break(interrupt) => Err(interrupt),
            }
        })
    }
}

/// Token encoders.
#[pymethods]
impl Model {
    /// The kinds of features, the default first.
    #[getter]
    fn feature_kinds(&self) -> Vec<&'static str> {
        self.0.feature_kinds()
    }

    /// Features of every token: values, columns and row offsets of a CSR matrix, the number of its columns, and the
    /// number of tokens of each sentence.
    #[expect(clippy::type_complexity, reason = "the parts of a sparse matrix")]
    fn encode<'py>(
        &self,
        py: Python<'py>,
        features: &str,
        records: Option<&Bound<'py, PyAny>>,
        paths: Vec<PathBuf>,
        n_threads: Option<usize>,
    ) -> PyResult<(
        Bound<'py, PyArray1<f32>>,
        Bound<'py, PyArray1<i32>>,
        Bound<'py, PyArray1<i64>>,
        usize,
        Bound<'py, PyArray1<i64>>,
    )> {
        let text = Text::new(records, paths)?;
        let Some(encoder) = self.0.encoder(features) else {
            let kinds = self.0.feature_kinds();
            let has = if kinds.is_empty() {
                "which has no features of words".to_owned()
            } else {
                format!("whose features are {}, not `{features}`", kinds.join(", "))
            };
            return Err(self.without(&has));
        };
        let encoder = &*encoder;
        let (values, columns, offsets, lengths) = run(py, wishes(n_threads), |caller| {
            let (mut values, mut columns) = (Vec::new(), Vec::new());
            let (mut offsets, mut lengths) = (vec![0i64], Vec::new());
            text.each(self.0.lexicon(), caller, |words, _| {
                // The end of the sentence is context for the words before it.
                let ids = |words: &Vec<String>| -> Vec<WordId> {
                    let ids = words.iter().map(|word| self.0.word_id(word));
                    ids.chain([WordId::EOS]).collect()
                };
                let ids: Vec<Vec<WordId>> = words.par_iter().map(ids).collect();
                let ids: Vec<&[WordId]> = ids.iter().map(Vec::as_slice).collect();
                let encoded = encoder.encode_all(&ids);
                for (rows, words) in encoded.iter().zip(&words) {
                    for (row_columns, row_values) in rows.iter().take(words.len()) {
                        columns.extend(row_columns.iter().map(|&column| column as i32));
                        values.extend_from_slice(row_values);
                        offsets.push(values.len() as i64);
                    }
                    lengths.push(words.len() as i64);
                }
                Ok(())
            })?;
            Ok((values, columns, offsets, lengths))
        })?;
        Ok((
            values.into_pyarray(py),
            columns.into_pyarray(py),
            offsets.into_pyarray(py),
            encoder.n_features(),
            lengths.into_pyarray(py),
        ))
    }
}

/// Topic models.
#[pymethods]
impl Model {
    /// Number of topics.
    fn n_topics(&self) -> PyResult<usize> {
        Ok(self.topic_model()?.n_topics())
    }

    /// Topic proportions of documents, one row per document. Gaussian LDA uses new words that have one of `vectors`.
    fn mixtures<'py>(
        &self,
        py: Python<'py>,
        records: Option<&Bound<'py, PyAny>>,
        paths: Vec<PathBuf>,
        vectors: Option<&Model>,
        n_threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let text = Text::new(records, paths)?;
        let model = self.topic_model()?;
        let params = InferenceParams::default().validate().map_err(|error| value_error(&error))?;
        let values = run(py, wishes(n_threads), |caller| {
            let mut values: Vec<f32> = Vec::new();
            if let Some(more) = vectors {
                let (glda, vectors) = self.with_vectors(more)?;
                let mut documents = self.0.lexicon().documents_of_words();
                text.each(self.0.lexicon(), caller, |words, _| {
                    words.iter().for_each(|words| documents.push(words));
                    Ok(())
                })?;
                let more = MoreVectors { vocab: &more.0.lexicon().vocab, vectors: &vectors };
                let documents = documents.finish();
                caller.check()?;
                let found = glda.infer_documents(&documents, Some(more), Topics::Fixed, &params);
                values.extend(found.iter().flat_map(|found| &found.mixture));
                return Ok(values);
            }
            text.each(self.0.lexicon(), caller, |_, ids| {
                let documents: Vec<&[WordId]> = ids.iter().map(Vec::as_slice).collect();
                values.extend(model.mixtures(&documents).as_slice());
                Ok(())
            })?;
            Ok(values)
        })?;
        let n_rows = values.len() / model.n_topics();
        values.into_pyarray(py).reshape([n_rows, model.n_topics()])
    }

    /// Number of known words of each document.
    fn lengths<'py>(
        &self,
        py: Python<'py>,
        records: Option<&Bound<'py, PyAny>>,
        paths: Vec<PathBuf>,
        n_threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let text = Text::new(records, paths)?;
        let lengths = run(py, wishes(n_threads), |caller| {
            let mut lengths = Vec::new();
            text.each(self.0.lexicon(), caller, |_, ids| {
                let known = |ids: &Vec<WordId>| ids.iter().filter(|&&id| id != WordId::UNK).count();
                lengths.extend(ids.iter().map(|ids| known(ids) as i64));
                Ok(())
            })?;
            Ok(lengths)
        })?;
        Ok(lengths.into_pyarray(py))
    }

    /// Topic proportions of documents that are given as ids of words, with offsets.
    fn mixtures_of_ids<'py>(
        &self,
        py: Python<'py>,
        indptr: PyReadonlyArray1<'py, i64>,
        ids: PyReadonlyArray1<'py, u32>,
        n_threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let model = self.topic_model()?;
        let (indptr, ids) = self.documents_of_ids(&indptr, &ids)?;
        let values: Vec<f32> = run(py, wishes(n_threads), |_| {
            let documents: Vec<&[WordId]> =
                indptr.windows(2).map(|ends| &ids[ends[0]..ends[1]]).collect();
            Ok(model.mixtures(&documents).into_vec())
        })?;
        values.into_pyarray(py).reshape([indptr.len() - 1, model.n_topics()])
    }

    /// Log-probability of every second word of documents, given the others, and the number of these words.
    fn completion(
        &self,
        py: Python<'_>,
        records: Option<&Bound<'_, PyAny>>,
        paths: Vec<PathBuf>,
        n_threads: Option<usize>,
    ) -> PyResult<(f64, usize)> {
        let text = Text::new(records, paths)?;
        let (lda, params) = (self.lda()?, InferenceParams::default().validate());
        let params = params.map_err(|error| value_error(&error))?;
        let found = run(py, wishes(n_threads), |caller| {
            let mut found: Vec<Completion> = Vec::new();
            text.each(self.0.lexicon(), caller, |_, ids| {
                found.par_extend(ids.par_iter().map(|ids| lda.complete(ids, &params)));
                Ok(())
            })?;
            Ok(found.into_iter().sum::<Completion>())
        })?;
        Ok((found.log_prob, found.n_tokens))
    }

    /// `completion` of documents that are given as ids of words, with offsets.
    fn completion_of_ids(
        &self,
        py: Python<'_>,
        indptr: PyReadonlyArray1<'_, i64>,
        ids: PyReadonlyArray1<'_, u32>,
        n_threads: Option<usize>,
    ) -> PyResult<(f64, usize)> {
        let (indptr, ids) = self.documents_of_ids(&indptr, &ids)?;
        let (lda, params) = (self.lda()?, InferenceParams::default().validate());
        let params = params.map_err(|error| value_error(&error))?;
        let found = run(py, wishes(n_threads), |_| {
            let rows = indptr.par_windows(2);
            let found: Vec<Completion> =
                rows.map(|ends| lda.complete(&ids[ends[0]..ends[1]], &params)).collect();
            Ok(found.into_iter().sum::<Completion>())
        })?;
        Ok((found.log_prob, found.n_tokens))
    }

    /// The most probable words of a topic with their probabilities.
    fn top_words(&self, topic: usize, n: usize) -> PyResult<Vec<(&str, f32)>> {
        let model = self.topic_model()?;
        if topic >= model.n_topics() {
            let message = format!("topic {topic} is out of range: there are {}", model.n_topics());
            return Err(PyValueError::new_err(message));
        }
        let words = model.top_word_ids(topic, n).into_iter();
        Ok(words.map(|(word, p)| (self.0.lexicon().vocab.word(word), p)).collect())
    }
}

/// Taggers.
#[pymethods]
impl Model {
    /// Names of the tags.
    fn tags(&self) -> PyResult<Vec<String>> {
        Ok(self.tagger()?.tags().to_vec())
    }

    /// The tags of the words of sentences, as indices into `tags`.
    fn tag(
        &self,
        py: Python<'_>,
        sentences: Vec<Vec<String>>,
        n_threads: Option<usize>,
    ) -> PyResult<Vec<Vec<u32>>> {
        let tagger = self.tagger()?;
        run(py, wishes(n_threads), |_| {
            let sentences: Vec<Vec<&str>> =
                sentences.iter().map(|words| words.iter().map(String::as_str).collect()).collect();
            let tags = tagger.tag_all(&sentences).into_iter();
            tags.map(|tags| tags.map_err(|error| value_error(&error))).collect()
        })
    }

    /// Posterior probabilities of the tags of the words of sentences, one row per word of all sentences.
    fn tag_probs<'py>(
        &self,
        py: Python<'py>,
        sentences: Vec<Vec<String>>,
        n_threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let tagger = self.tagger()?;
        let found = run(py, wishes(n_threads), |_| {
            let sentences: Vec<Vec<&str>> =
                sentences.iter().map(|words| words.iter().map(String::as_str).collect()).collect();
            let outputs = TagOutputs::default().marginals(true);
            let found = tagger.tag_all_with(&TagInput::of_words(&sentences), outputs);
            let rows = |tagged: Result<Tagged, TagError>| {
                let marginals = tagged.map_err(|error| value_error(&error))?.marginals;
                Ok(marginals.expect("the marginals were asked for").into_vec())
            };
            found.into_iter().map(rows).collect::<PyResult<Vec<Vec<f32>>>>()
        })?;
        let n_words = sentences.iter().map(Vec::len).sum();
        found.concat().into_pyarray(py).reshape([n_words, tagger.tags().len()])
    }
}

/// Word vectors.
#[pymethods]
impl Model {
    /// The vector of a word.
    fn vector<'py>(&self, py: Python<'py>, word: &str) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let vectors = on_all_cores(py, || self.0.word_vectors())?;
        let vectors = vectors.ok_or_else(|| self.without("which has no word vectors"))?;
        let id = self.0.lexicon().vocab.id(word);
        let vector = if id == WordId::UNK { None } else { vectors.get(id) };
        let vector = vector.ok_or_else(|| PyKeyError::new_err(word.to_owned()))?;
        Ok(PyArray1::from_slice(py, vector))
    }

    /// The words with the most similar vectors, with their cosines.
    fn nearest(
        &self,
        py: Python<'_>,
        query: Vec<f32>,
        n: usize,
        except: Vec<String>,
    ) -> PyResult<Vec<(&str, f32)>> {
        let vectors = on_all_cores(py, || self.0.word_vectors())?;
        let vectors = vectors.ok_or_else(|| self.without("which has no word vectors"))?;
        if query.len() != vectors.dim() {
            let message = format!("expected {} numbers, got {}", vectors.dim(), query.len());
            return Err(PyValueError::new_err(message));
        }
        let vocab = &self.0.lexicon().vocab;
        let except: Vec<WordId> = except.iter().map(|word| vocab.id(word)).collect();
        let found = on_all_cores(py, || vectors.nearest(&query, n, &except))?.into_iter();
        Ok(found.map(|(word, cosine)| (vocab.word(word), cosine)).collect())
    }
}
