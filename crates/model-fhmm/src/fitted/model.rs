//! The fitted model.

use crate::inference::smoother::Smoother;
use crate::params::FhmmParams;
use crate::word_rows::WordRows;
use latens_corpus::{Lexicon, WordId};
use latens_model::Valid;
use serde_json::{Map, Value};

/// A factorial hidden Markov model of sentences.
#[derive(Debug)]
pub struct Fhmm {
    pub(crate) params: Valid<FhmmParams>,
    pub(crate) lexicon: Lexicon,
    pub(crate) facts: Map<String, Value>,
    pub(crate) rows: WordRows,
    pub(crate) smoother: Smoother<f32>,
}

impl Fhmm {
    /// Kind of this model in the header of its file.
    pub const KIND: &str = "fhmm";

    /// Default parameters, to be changed by setters.
    pub fn params() -> FhmmParams {
        FhmmParams::default()
    }

    /// Parameters the model was fitted with.
    pub fn fitted_with(&self) -> &Valid<FhmmParams> {
        &self.params
    }

    /// Preprocessing and vocabulary of the training text.
    pub fn lexicon(&self) -> &Lexicon {
        &self.lexicon
    }

    /// Facts about the training, saved with the model.
    pub fn facts(&self) -> &Map<String, Value> {
        &self.facts
    }

    /// Warnings about the training, usually none.
    pub fn warnings(&self) -> Vec<&str> {
        let warnings = self.facts.get("warnings").and_then(Value::as_array);
        warnings.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Id of a preprocessed word.
    ///
    /// A word that is not in the vocabulary has an id beyond it if a rare word of the training text has the same
    /// signature. Functions of this model that take ids accept such ids.
    pub fn word_id(&self, word: &str) -> WordId {
        self.lexicon.vocab.get(word).unwrap_or_else(|| self.rows.id_of_unseen(word))
    }
}
