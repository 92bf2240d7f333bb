//! Constraints and guides in Python.

use crate::errors::value_error;
use crate::model::Model;
use crate::work::{Wishes, run};
use latens::control::{
    self, Alphabet, Constraint, ControlError, Lengths, Lookahead, LookaheadOptions, NextWords,
    Reading, Steerer,
};
use latens::corpus::WordId;
use latens::hmm::Hmm;
use latens::math::Rng;
use latens::tasks::SampleOptions;
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Deserialize;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// A constraint as `python/latens/constraint.py` writes it.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Tree {
    Anything,
    Contains(Vec<Vec<String>>),
    InOrder(Vec<Vec<String>>),
    Excludes(Vec<String>),
    Regex(String),
    CharRegex(String),
    Words(usize, Option<usize>),
    StartsWith(String),
    EndsWith(String),
    Infill(String, String),
    And(Vec<Tree>),
    Or(Vec<Tree>),
    Not(Box<Tree>),
}

impl From<Tree> for Constraint {
    fn from(tree: Tree) -> Constraint {
        match tree {
            Tree::Anything => Constraint::anything(),
            Tree::Contains(groups) => {
                Constraint::all(groups.into_iter().map(Constraint::contains_any))
            }
            Tree::InOrder(groups) => Constraint::contains_any_in_order(groups),
            Tree::Excludes(phrases) => Constraint::excludes_all(phrases),
            Tree::Regex(pattern) => Constraint::regex(pattern),
            Tree::CharRegex(pattern) => Constraint::char_regex(pattern),
            Tree::Words(min, max) => Constraint::words(min, max),
            Tree::StartsWith(text) => Constraint::starts_with(text),
            Tree::EndsWith(text) => Constraint::ends_with(text),
            Tree::Infill(prefix, suffix) => Constraint::infill(prefix, suffix),
            Tree::And(parts) => Constraint::all(parts.into_iter().map(Constraint::from)),
            Tree::Or(parts) => {
                let parts = parts.into_iter().map(Constraint::from);
                parts.reduce(|a, b| a | b).unwrap_or_else(Constraint::anything)
            }
            Tree::Not(part) => !Constraint::from(*part),
        }
    }
}

/// A hidden Markov model with the tables of a constraint.
#[pyclass(frozen, module = "latens._latens")]
pub(crate) struct Guide {
    model: Model,
    lookahead: Arc<Lookahead>,
    prefix: Vec<WordId>,
    start: Reading,
    /// The latest beginnings of texts: the next word usually continues one of them.
    recent: Mutex<VecDeque<(Vec<WordId>, Reading)>>,
    n_threads: Option<usize>,
}

/// How many beginnings of texts are kept.
const N_RECENT: usize = 256;

fn error(error: &ControlError) -> PyErr {
    value_error(error)
}

fn hmm(model: &Model) -> PyResult<&Hmm> {
    model.get().downcast_ref::<Hmm>().ok_or_else(|| {
        let found = model.get().description();
        PyValueError::new_err(format!("the guide must be a hidden Markov model, not {found}"))
    })
}

#[pymethods]
impl Guide {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "the arguments of the Python class")]
    fn new(
        py: Python<'_>,
        model: Model,
        constraint: &str,
        pieces: Option<Vec<Option<Vec<u8>>>>,
        prefix: Vec<u32>,
        min_words: usize,
        max_words: usize,
        keep_unk: bool,
        n_threads: Option<usize>,
    ) -> PyResult<Guide> {
        let tree: Tree = serde_json::from_str(constraint).map_err(|error| value_error(&error))?;
        let constraint = Constraint::from(tree);
        let own = model.clone();
        let hmm = hmm(&own)?;
        let prefix = ids(hmm, prefix)?;
        let wishes = Wishes { n_threads, ..Wishes::default() };
        let (lookahead, start) = run(py, wishes, |_| {
            let alphabet = match &pieces {
                None => Alphabet::Words(hmm.lexicon()),
                Some(pieces) => Alphabet::Pieces(pieces),
            };
            let compiled = constraint.compile(&alphabet).map_err(|e| error(&e))?;
            if compiled.automaton.n_symbols() != hmm.n_words() {
                let message = "there must be one piece per word of the vocabulary";
                return Err(PyValueError::new_err(message));
            }
            let given = prefix.len();
            let max = compiled
                .max_words
                .map_or(max_words, |max| max.saturating_sub(given).min(max_words));
            let min = compiled.min_words.saturating_sub(given).max(min_words);
            let options = LookaheadOptions::new(Lengths { min, max }).keep_unk(keep_unk);
            let lookahead =
                Lookahead::new(hmm, compiled.automaton, options).map_err(|e| error(&e))?;
            let start = control::Guide::new(hmm, &lookahead).start_with(&prefix);
            let start = start.map_err(|e| error(&e))?;
            Ok((lookahead, start))
        })?;
        let lookahead = Arc::new(lookahead);
        Ok(Guide { model, lookahead, prefix, start, recent: Mutex::default(), n_threads })
    }

    /// The same tables for texts with another beginning. As many words may follow it.
    fn with_prefix(&self, py: Python<'_>, prefix: Vec<u32>) -> PyResult<Guide> {
        let prefix = ids(hmm(&self.model)?, prefix)?;
        let start =
            run(py, self.wishes(), |_| self.guide()?.start_with(&prefix).map_err(|e| error(&e)))?;
        Ok(Guide {
            model: self.model.clone(),
            lookahead: Arc::clone(&self.lookahead),
            prefix,
            start,
            recent: Mutex::default(),
            n_threads: self.n_threads,
        })
    }

    /// Number of states of the automaton.
    #[getter]
    fn n_states(&self) -> usize {
        self.lookahead.automaton().n_states()
    }

    /// Number of classes of words that the automaton distinguishes.
    #[getter]
    fn n_classes(&self) -> usize {
        self.lookahead.automaton().n_classes()
    }

    /// ln p(α | prefix, words).
    fn log_prob(&self, py: Python<'_>, words: Vec<u32>) -> PyResult<f64> {
        let words = ids(hmm(&self.model)?, words)?;
        run(py, self.wishes(), |_| Ok(self.guide()?.log_prob(&self.reading(&words)?)))
    }

    /// ln p(x, α | prefix, words) and ln p(α | prefix, words, x) for all words x.
    #[expect(clippy::type_complexity, reason = "two arrays")]
    fn next<'py>(
        &self,
        py: Python<'py>,
        words: Vec<u32>,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>)> {
        let words = ids(hmm(&self.model)?, words)?;
        let next = run(py, self.wishes(), |_| {
            let mut next = NextWords::default();
            self.guide()?.next_words(&self.reading(&words)?, &mut next);
            Ok(next)
        })?;
        Ok((next.joint.into_pyarray(py), next.conditional.into_pyarray(py)))
    }

    /// Whether a text satisfies the constraint, apart from its length.
    fn accepts(&self, words: Vec<u32>) -> PyResult<bool> {
        let words = ids(hmm(&self.model)?, words)?;
        let all = self.prefix.iter().chain(&words).map(|word| word.index());
        Ok(self.lookahead.automaton().accepts(all))
    }

    /// Texts with their log-probabilities, by sampling, by beam search or by Viterbi.
    #[expect(clippy::too_many_arguments, reason = "the arguments of the Python method")]
    fn generate(
        &self,
        py: Python<'_>,
        model: Option<Model>,
        n: usize,
        weight: f64,
        beam: Option<usize>,
        temperature: f64,
        top_k: Option<usize>,
        top_p: Option<f64>,
        seed: u64,
    ) -> PyResult<Vec<(Vec<u32>, f64)>> {
        let must =
            |name: &str, what: &str| Err(PyValueError::new_err(format!("`{name}` must be {what}")));
        if !(weight >= 0.0 && weight.is_finite()) {
            return must("weight", "a number of at least 0");
        }
        if !(temperature >= 0.0 && temperature.is_finite()) {
            return must("temperature", "a number of at least 0");
        }
        if beam == Some(0) || n == 0 {
            return must("n", "at least 1");
        }
        let language_model = model.as_ref().map(|model| {
            let vocab = &model.get().lexicon().vocab;
            control::check_vocabulary(&hmm(&self.model)?.lexicon().vocab, vocab)
                .map_err(|e| error(&e))?;
            let missing = || PyValueError::new_err("the model must be a language model");
            model.get().as_language_model().ok_or_else(missing)
        });
        let language_model = language_model.transpose()?;
        let guide = self.guide()?;
        run(py, self.wishes(), |caller| {
            let steerer = match language_model {
                None => Steerer::alone(guide, &self.prefix),
                Some(model) => Steerer::new(model, guide, &self.prefix),
            };
            let steerer = steerer.map_err(|e| error(&e))?.weight(weight);
            let mut found = Vec::new();
            match beam {
                Some(width) => found = steerer.beam(width.max(n), n).map_err(|e| error(&e))?,
                None => {
                    let mut options = SampleOptions::default();
                    options.temperature = temperature;
                    (options.top_k, options.top_p) = (top_k, top_p);
                    let mut rng = Rng::new(seed);
                    for _ in 0..n {
                        caller.check()?;
                        found.push(steerer.sample(&options, &mut rng).map_err(|e| error(&e))?);
                    }
                }
            }
            let ids = |words: &[WordId]| words.iter().map(|word| word.0).collect();
            Ok(found.iter().map(|text| (ids(&text.words), text.log_prob)).collect())
        })
    }
}

impl Guide {
    fn wishes(&self) -> Wishes {
        Wishes { n_threads: self.n_threads, ..Wishes::default() }
    }

    fn guide(&self) -> PyResult<control::Guide<'_>> {
        Ok(control::Guide::new(hmm(&self.model)?, &self.lookahead))
    }

    /// The text after the prefix and some words. Continues a recent one if it can.
    fn reading(&self, words: &[WordId]) -> PyResult<Reading> {
        if words.len() > self.start.n_left() {
            let message = format!(
                "{} words were generated, and at most {} are allowed",
                words.len(),
                self.start.n_left()
            );
            return Err(PyValueError::new_err(message));
        }
        let guide = self.guide()?;
        let (mut n_read, mut reading) = (0, self.start.clone());
        {
            let recent = self.recent.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let begins = recent.iter().filter(|(known, _)| words.starts_with(known));
            if let Some((known, found)) = begins.max_by_key(|(known, _)| known.len()) {
                (n_read, reading) = (known.len(), found.clone());
            }
        }
        for &word in &words[n_read..] {
            guide.read(&mut reading, word);
        }
        if n_read < words.len() {
            let mut recent = self.recent.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            recent.push_back((words.to_vec(), reading.clone()));
            if recent.len() > N_RECENT {
                recent.pop_front();
            }
        }
        Ok(reading)
    }
}

/// Checked ids of words of a text.
fn ids(hmm: &Hmm, words: Vec<u32>) -> PyResult<Vec<WordId>> {
    let words: Vec<WordId> = words.into_iter().map(WordId).collect();
    let is_word = |word: &WordId| word.index() < hmm.n_words() && *word != WordId::EOS;
    match words.iter().find(|word| !is_word(word)) {
        None => Ok(words),
        Some(word) => Err(PyValueError::new_err(format!(
            "{} is not a word id, or is that of `<eos>`",
            word.0
        ))),
    }
}
