//! The fitted model.

use crate::discounts::Discounts;
use crate::params::NgramParams;
use crate::scorer::{Cache, History, NgramScorer};
use crate::trie::Trie;
use latens_corpus::Lexicon;
use latens_model::{LanguageModel, ParamError, Params, Scorer, Valid};
use serde_json::{Map, Value, json};

/// An n-gram language model with interpolated modified Kneser–Ney smoothing.
#[derive(Clone, Debug)]
pub struct Ngram {
    pub(crate) params: Valid<NgramParams>,
    pub(crate) lexicon: Lexicon,
    pub(crate) facts: Map<String, Value>,
    pub(crate) trie: Trie,
}

impl Ngram {
    /// Kind of this model in the header of its file.
    pub const KIND: &str = "ngram";

    /// Default parameters, to be changed by setters.
    pub fn params() -> NgramParams {
        NgramParams::default()
    }

    /// The model of estimated probabilities.
    pub(crate) fn from_estimated(
        params: &Valid<NgramParams>,
        lexicon: &Lexicon,
        trie: Trie,
        discounts: &[Discounts],
    ) -> Ngram {
        let mut facts = Map::new();
        let discounts: Vec<[f64; 3]> = discounts.iter().map(|discounts| discounts.0).collect();
        facts.insert("discounts".to_owned(), json!(discounts));
        Ngram { params: params.clone(), lexicon: lexicon.clone(), facts, trie }
    }

    /// Parameters the model was fitted with.
    pub fn fitted_with(&self) -> &Valid<NgramParams> {
        &self.params
    }

    /// Returns the same n-grams with another cache: its interpolation weight, and its number of recent
    /// words.
    pub fn with_cache(&self, cache_weight: f64, cache_size: usize) -> Result<Ngram, ParamError> {
        let params = NgramParams { cache_weight, cache_size, ..self.params.clone().into_inner() };
        Ok(Ngram { params: params.validate()?, ..self.clone() })
    }

    /// Preprocessing and vocabulary of the training text.
    pub fn lexicon(&self) -> &Lexicon {
        &self.lexicon
    }

    /// Facts about the training, saved with the model.
    pub fn facts(&self) -> &Map<String, Value> {
        &self.facts
    }

    /// Adds a fact about the training.
    pub fn add_fact(&mut self, name: &str, fact: impl Into<Value>) {
        self.facts.insert(name.to_owned(), fact.into());
    }

    /// Number of words per n-gram, including the predicted one.
    pub fn order(&self) -> usize {
        self.trie.order()
    }

    /// Number of n-grams of each order from 1 on. Order 1 includes the start of the sentence.
    pub fn n_ngrams(&self) -> Vec<usize> {
        self.trie.levels.iter().map(|level| level.log_probs.len()).collect()
    }
}

impl LanguageModel for Ngram {
    fn n_words(&self) -> usize {
        self.trie.n_words()
    }

    fn scorer(&self) -> Box<dyn Scorer + '_> {
        let cache = (self.params.cache_weight > 0.0)
            .then(|| Cache::new(self.params.cache_weight, self.params.cache_size));
        Box::new(NgramScorer { trie: &self.trie, history: History::begin(&self.trie), cache })
    }

    fn forgets_sentences(&self) -> bool {
        self.params.cache_weight == 0.0
    }
}
