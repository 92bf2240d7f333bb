//! The model as any [`Model`], and its file: one set of arrays per order.

use crate::model::Ngram;
use crate::params::NgramParams;
use crate::trie::{Level, Trie};
use latens_corpus::Lexicon;
use latens_model::{Element, FileError, LanguageModel, Model, ModelFile, ModelWriter};
use latens_store::FlatArray;
use serde_json::{Map, Value};
use std::path::Path;

impl Model for Ngram {
    fn kind(&self) -> &'static str {
        Self::KIND
    }

    fn description(&self) -> &'static str {
        "an n-gram language model"
    }

    fn lexicon(&self) -> &Lexicon {
        &self.lexicon
    }

    fn params_json(&self) -> Value {
        self.fitted_with().to_json()
    }

    fn facts(&self) -> &Map<String, Value> {
        &self.facts
    }

    fn writer(&self) -> ModelWriter<'_> {
        let mut writer =
            ModelWriter::new(Self::KIND, &self.params).lexicon(&self.lexicon).facts(&self.facts);
        for (i, level) in self.trie.levels.iter().enumerate() {
            writer = array(writer, i, "log_probs", &level.log_probs);
            if i > 0 {
                writer = array(writer, i, "words", &level.words);
            }
            if i + 1 < self.trie.order() {
                writer = array(writer, i, "backoffs", &level.backoffs);
                writer = array(writer, i, "children", &level.children);
            }
        }
        writer
    }

    fn as_language_model(&self) -> Option<&dyn LanguageModel> {
        Some(self)
    }
}

impl Ngram {
    /// Saves the model to a file.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        self.writer().save(path)
    }

    /// Opens a model file.
    pub fn open(path: impl AsRef<Path>) -> Result<Ngram, FileError> {
        Ngram::from_file(&ModelFile::open(path)?)
    }

    /// Reads the model from an open file.
    pub fn from_file(file: &ModelFile) -> Result<Ngram, FileError> {
        file.expect_kind(Self::KIND)?;
        let params = file.parameters::<NgramParams>()?;
        let lexicon = file.lexicon()?;
        let mut levels: Vec<Level> = Vec::new();
        for i in 0..params.order {
            let last = i + 1 == params.order;
            let name = |what: &str| array_name(i, what);
            let none = || Vec::new().into();
            let level = Level {
                words: if i == 0 { Vec::new().into() } else { file.vector(&name("words"))? },
                log_probs: file.vector(&name("log_probs"))?,
                backoffs: if last { none() } else { file.vector(&name("backoffs"))? },
                children: if last { Vec::new().into() } else { file.vector(&name("children"))? },
            };
            check(&level, i, last, levels.last(), lexicon.vocab.len())
                .map_err(|problem| file.invalid(format!("order {}: {problem}", i + 1)))?;
            levels.push(level);
        }
        let facts = file.header().training.clone();
        Ok(Ngram { params, lexicon, facts, trie: Trie { levels } })
    }
}

/// Largest logarithm of a back-off weight.
pub(crate) const MAX_LOG_BACKOFF: f32 = 50.0;

fn array<'a, T: Element>(
    writer: ModelWriter<'a>,
    level: usize,
    what: &str,
    values: &'a FlatArray<T>,
) -> ModelWriter<'a> {
    writer.vector(&array_name(level, what), values)
}

fn array_name(level: usize, what: &str) -> String {
    format!("order{}.{what}", level + 1)
}

/// Checks that a level can be searched safely and contains log-probabilities, whatever the file is.
fn check(
    level: &Level,
    i: usize,
    last: bool,
    below: Option<&Level>,
    n_words: usize,
) -> Result<(), &'static str> {
    let n = level.log_probs.len();
    match below {
        None if n != n_words + 1 => return Err("the number of entries is not the number of words"),
        Some(below) if below.children.last() != Some(&(n as u64)) || level.words.len() != n => {
            return Err("the arrays have inconsistent lengths");
        }
        _ => {}
    }
    if !last && (level.backoffs.len() != n || level.children.len() != n + 1) {
        return Err("the arrays have inconsistent lengths");
    }
    if !last && (level.children[0] != 0 || !level.children.is_sorted()) {
        return Err("the child offsets are not sorted");
    }
    let sorted = |bounds: &[u64]| {
        let children = &level.words[bounds[0] as usize..bounds[1] as usize];
        children.is_sorted_by(|a, b| a < b)
            && children.last().is_none_or(|&w| w as usize <= n_words)
    };
    if i > 0 && !below.is_some_and(|below| below.children.windows(2).all(sorted)) {
        return Err("the words are not sorted or not in the vocabulary");
    }
    if level.log_probs.iter().any(|&p| p.is_nan() || p > 1e-5) {
        return Err("it contains a probability above 1 or NaN");
    }
    // A back-off weight of an imported model may be above 1, but probabilities must not overflow.
    if !level.backoffs.iter().all(|&b| b <= MAX_LOG_BACKOFF) {
        return Err("it contains a back-off weight above e^50 or NaN");
    }
    Ok(())
}
