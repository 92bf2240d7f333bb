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

    /// Hyperparameters the model was fitted with.
    pub fn params(&self) -> &Valid<FhmmParams> {
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

    /// Number of words that the model distinguishes. Rare words may count as one.
    pub fn n_words(&self) -> usize {
        self.rows.n_rows
    }

    /// Id of a preprocessed word. A word that is not in the vocabulary has an id beyond it if a rare word of the training
    /// text has the same signature; encoders of the model accept such ids.
    pub fn word_id(&self, word: &str) -> WordId {
        self.lexicon.vocab.get(word).unwrap_or_else(|| self.rows.id_of_unseen(word))
    }

    /// The `n` words most characteristic of a state of a layer, best first, with their scores.
    ///
    /// The score is θ minus the logarithm of the mean of e^θ over the states of the layer. Words that share their scores
    /// with others are left out.
    ///
    /// # Panics
    /// If `layer` or `state` is out of range.
    pub fn top_words(&self, layer: usize, state: usize, n: usize) -> Vec<(WordId, f32)> {
        let shape = self.smoother.distribution().shape;
        assert!(layer < shape.n_layers && state < shape.n_states, "layer or state out of range");
        let n_own = (shape.n_words - self.rows.signatures.len()) as u32;
        let unknown = WordId::UNK.index();
        let is_own = |&(word, &row): &(usize, &u32)| {
            row < n_own && (word == unknown || row != self.rows.of_word[unknown])
        };
        let own = self.rows.of_word.iter().enumerate().filter(is_own);
        let score = |(word, &row): (usize, &u32)| {
            let scores = &self.smoother.distribution().scores(row as usize)[shape.layer(layer)];
            let mean = scores.iter().map(|s| s.exp()).sum::<f32>() / scores.len() as f32;
            (WordId::from(word), scores[state] - mean.ln())
        };
        let mut words: Vec<(WordId, f32)> = own.map(score).collect();
        words.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.0.cmp(&b.0.0)));
        words.truncate(n);
        words
    }
}
