//! Text from Python: paths, strings, and lists of words.

use crate::errors::{read_error, value_error};
use crate::work::Caller;
use latens::corpus::embedded::{self, Split};
use latens::corpus::{
    Cleaning, Corpus, DocumentCorpus, DocumentFrequency, Inputs, Lexicon, Preprocessing, ReadError,
    Sentences, StopWords, VocabLimits, WordId,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyString};
use rayon::prelude::*;
use serde::Deserialize;
use std::cell::RefCell;
use std::path::PathBuf;

/// Number of records that are taken from Python at a time, with the GIL held.
const BATCH: usize = 2048;

/// One sentence or document.
pub(crate) enum Record {
    Raw(String),
    Tokens(Vec<String>),
}

/// Where text comes from.
pub(crate) enum Text {
    /// Files.
    Paths(Vec<PathBuf>),
    /// A Python iterator over strings or over sequences of words.
    Records(Py<PyIterator>),
}

impl Text {
    /// `paths` or the iterable `records`, whichever is given.
    pub(crate) fn new(records: Option<&Bound<'_, PyAny>>, paths: Vec<PathBuf>) -> PyResult<Text> {
        match records {
            None => Ok(Text::Paths(paths)),
            Some(records) => Ok(Text::Records(records.try_iter()?.unbind())),
        }
    }

    /// Learns a vocabulary from sentences.
    pub(crate) fn corpus(self, lexical: &Lexical, caller: &Caller<'_>) -> PyResult<Corpus> {
        let reader = Corpus::reader().preprocessing(lexical.preprocessing).limits(lexical.limits);
        match self {
            Text::Paths(paths) => reader.read_files(paths).map_err(|error| read_error(&error)),
            Text::Records(records) => read(
                &Records::new(records, caller),
                |lines| reader.read_lines(lines),
                |tokens| reader.read_tokens(tokens),
            ),
        }
    }

    /// Learns a vocabulary from documents.
    pub(crate) fn documents(
        self,
        lexical: &Lexical,
        caller: &Caller<'_>,
    ) -> PyResult<DocumentCorpus> {
        let reader = DocumentCorpus::reader()
            .preprocessing(lexical.preprocessing)
            .limits(lexical.limits)
            .cleaning(lexical.cleaning.clone());
        match self {
            Text::Paths(paths) => reader.read_files(paths).map_err(|error| read_error(&error)),
            Text::Records(records) => read(
                &Records::new(records, caller),
                |texts| reader.read_texts(texts),
                |tokens| reader.read_tokens(tokens),
            ),
        }
    }

    /// Encodes sentences with a known vocabulary.
    pub(crate) fn sentences(self, lexicon: &Lexicon, caller: &Caller<'_>) -> PyResult<Sentences> {
        if let Text::Paths(paths) = self {
            return lexicon.read(&Inputs::new(paths)).map_err(|error| read_error(&error));
        }
        let mut sentences = Vec::new();
        self.each(lexicon, caller, |_, batch| {
            sentences.extend(batch);
            Ok(())
        })?;
        Ok(Sentences::from_words(sentences))
    }

    /// Calls `visit` with the normalized and cleaned words of batches of texts, and with their ids in `lexicon`.
    pub(crate) fn each(
        self,
        lexicon: &Lexicon,
        caller: &Caller<'_>,
        mut visit: impl FnMut(Vec<Vec<String>>, Vec<Vec<WordId>>) -> PyResult<()>,
    ) -> PyResult<()> {
        let records = match self {
            Text::Paths(paths) => {
                let corpus = Corpus::read(
                    &Inputs::new(paths),
                    &lexicon.preprocessing,
                    &VocabLimits::default(),
                )
                .map_err(|error| read_error(&error))?;
                let vocab = &corpus.lexicon.vocab;
                for begin in (0..corpus.sentences.len()).step_by(BATCH) {
                    caller.check()?;
                    let end = (begin + BATCH).min(corpus.sentences.len());
                    let words = (begin..end).into_par_iter().map(|idx| {
                        let sentence = corpus.sentences.get(idx);
                        let words = sentence.iter().filter(|&&id| id != WordId::EOS);
                        words.map(|&id| vocab.word(id).to_owned()).collect()
                    });
                    visit_words(words.collect(), lexicon, &mut visit)?;
                }
                return Ok(());
            }
            Text::Records(records) => Records::new(records, caller),
        };
        loop {
            let batch = records.batch()?;
            if batch.is_empty() {
                return Ok(());
            }
            let words = batch.into_par_iter().map(|record| record.words(&lexicon.preprocessing));
            visit_words(words.collect(), lexicon, &mut visit)?;
        }
    }
}

fn visit_words(
    words: Vec<Vec<String>>,
    lexicon: &Lexicon,
    visit: &mut impl FnMut(Vec<Vec<String>>, Vec<Vec<WordId>>) -> PyResult<()>,
) -> PyResult<()> {
    let words = match lexicon.cleaning.is_empty() {
        true => words,
        false => words.into_par_iter().map(|words| cleaned(&words, &lexicon.cleaning)).collect(),
    };
    let ids = words
        .par_iter()
        .map(|words| words.iter().map(|word| lexicon.vocab.id(word)).collect())
        .collect();
    visit(words, ids)
}

fn cleaned(words: &[String], cleaning: &Cleaning) -> Vec<String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut left = Vec::new();
    cleaning.clean(&words, |word| left.push(word.to_owned()));
    left
}

impl Record {
    fn words(self, preprocessing: &Preprocessing) -> Vec<String> {
        match self {
            Record::Raw(text) => {
                let mut words = Vec::new();
                preprocessing.words(&text, |word| words.push(word.to_owned()));
                words
            }
            Record::Tokens(tokens) => tokens
                .iter()
                .map(|token| preprocessing.normalize_word(token).into_owned())
                .collect(),
        }
    }
}

/// Preprocessing and limits of a vocabulary that is to be learned.
pub(crate) struct Lexical {
    pub(crate) preprocessing: Preprocessing,
    pub(crate) limits: VocabLimits,
    cleaning: Cleaning,
}

/// How documents are cleaned, as Python says it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CleaningChoice {
    /// The name of a language or a list of words; `None` for no stop words.
    stop_words: Option<StopWordsChoice>,
    min_df: DocumentFrequency,
    max_df: DocumentFrequency,
    phrases: usize,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum StopWordsChoice {
    Language(String),
    Words(Vec<String>),
}

impl CleaningChoice {
    fn cleaning(self) -> PyResult<Cleaning> {
        let mut cleaning = Cleaning::topics();
        cleaning.stop_words = match self.stop_words {
            None => StopWords::default(),
            Some(StopWordsChoice::Words(words)) => StopWords::new("list", words),
            Some(StopWordsChoice::Language(name)) => {
                StopWords::of_language(&name).ok_or_else(|| {
                    let known = StopWords::languages().collect::<Vec<_>>().join(", ");
                    let message = "`stop_words` must be None, a list of words or a language";
                    PyValueError::new_err(format!("{message} ({known}), got '{name}'"))
                })?
            }
        };
        cleaning.min_df = self.min_df;
        cleaning.max_df = self.max_df;
        cleaning.n_phrases = self.phrases;
        Ok(cleaning)
    }
}

impl Lexical {
    /// Parses the JSON objects of preprocessing, limits, and, for documents, cleaning.
    pub(crate) fn new(
        preprocessing: &str,
        limits: &str,
        cleaning: Option<&str>,
    ) -> PyResult<Lexical> {
        let preprocessing =
            serde_json::from_str(preprocessing).map_err(|error| value_error(&error))?;
        let limits = serde_json::from_str(limits).map_err(|error| value_error(&error))?;
        let cleaning = match cleaning {
            None => Cleaning::default(),
            Some(json) => {
                let choice: CleaningChoice =
                    serde_json::from_str(json).map_err(|error| value_error(&error))?;
                choice.cleaning()?
            }
        };
        Ok(Lexical { preprocessing, limits, cleaning })
    }
}

/// Records that come from Python in batches, so that the GIL is free in between.
struct Records<'a> {
    iterator: Py<PyIterator>,
    caller: &'a Caller<'a>,
    /// The exception that ended the iteration.
    error: RefCell<Option<PyErr>>,
}

/// Reads records as lines or as tokens, whichever the first one is.
fn read<T>(
    records: &Records<'_>,
    of_lines: impl FnOnce(&mut dyn Iterator<Item = String>) -> Result<T, ReadError>,
    of_tokens: impl FnOnce(&mut dyn Iterator<Item = Vec<String>>) -> Result<T, ReadError>,
) -> PyResult<T> {
    let mut all = records.iter().peekable();
    let is_tokens = matches!(all.peek(), Some(Record::Tokens(_)));
    let mixed = || {
        let message = "X mixes strings and lists of words";
        *records.error.borrow_mut() = Some(PyValueError::new_err(message));
    };
    let result = if is_tokens {
        of_tokens(&mut all.map_while(|record| match record {
            Record::Tokens(tokens) => Some(tokens),
            Record::Raw(_) => {
                mixed();
                None
            }
        }))
    } else {
        of_lines(&mut all.map_while(|record| match record {
            Record::Raw(text) => Some(text),
            Record::Tokens(_) => {
                mixed();
                None
            }
        }))
    };
    match records.error.borrow_mut().take() {
        Some(error) => Err(error),
        None => result.map_err(|error| read_error(&error)),
    }
}

impl<'a> Records<'a> {
    fn new(iterator: Py<PyIterator>, caller: &'a Caller<'a>) -> Records<'a> {
        Records { iterator, caller, error: RefCell::new(None) }
    }

    /// The next records; none at the end.
    fn batch(&self) -> PyResult<Vec<Record>> {
        self.caller.check()?;
        Python::attach(|py| {
            let iterator = self.iterator.bind(py).clone();
            iterator.take(BATCH).map(|item| record(&item?)).collect()
        })
    }

    /// All records. Stops at an exception, which `error` keeps.
    fn iter(&self) -> impl Iterator<Item = Record> + '_ {
        std::iter::from_fn(|| match self.batch() {
            Ok(batch) if batch.is_empty() => None,
            Ok(batch) => Some(batch),
            Err(error) => {
                *self.error.borrow_mut() = Some(error);
                None
            }
        })
        .flatten()
    }
}

fn record(item: &Bound<'_, PyAny>) -> PyResult<Record> {
    if let Ok(text) = item.cast::<PyString>() {
        return Ok(Record::Raw(text.to_str()?.to_owned()));
    }
    match item.extract::<Vec<String>>() {
        Ok(tokens) => Ok(Record::Tokens(tokens)),
        Err(_) => {
            let found = item.get_type().name()?;
            Err(PyTypeError::new_err(format!(
                "expected a string or a list of words, got an item of type `{found}`"
            )))
        }
    }
}

/// A part of the corpus that comes with latens: `train`, `valid` or `test` sentences, `docs` or `tagged`.
#[pyfunction]
pub(crate) fn embedded_text(part: &str) -> PyResult<String> {
    match (part, Split::ALL.into_iter().find(|split| split.name() == part)) {
        (_, Some(split)) => Ok(embedded::text(split)),
        ("docs", _) => Ok(embedded::docs()),
        ("tagged", _) => Ok(embedded::tagged(Split::Train)),
        _ => Err(PyValueError::new_err(format!(
            "`part` must be train, valid, test, docs or tagged, got {part}"
        ))),
    }
}
