//! The fitted model.

use crate::params::HmmParams;
use crate::space::kept_lists::KeptLists;
use crate::space::state_space::StateSpace;
use crate::tables::block_cache::TransitionBlocks;
use crate::tables::probability_tables::Tables;
use crate::tables::tag_table::TagTable;
use crate::tables::unknown_words::reserve_unknown_share;
use crate::weights::neural::Neural;
use latens_corpus::{Lexicon, WordId};
use latens_model::Valid;
use latens_store::FlatArray;
use serde_json::{Map, Value};

/// A hidden Markov model of sentences.
#[derive(Debug)]
pub struct Hmm {
    pub(crate) params: Valid<HmmParams>,
    pub(crate) lexicon: Lexicon,
    pub(crate) facts: Map<String, Value>,
    pub(crate) space: StateSpace,
    /// The weights of the networks, if the probabilities come from networks.
    pub(crate) weights: Option<Vec<f32>>,
    pub(crate) start: FlatArray<f32>,
    pub(crate) blocks: TransitionBlocks,
    /// For every slot, the states that may emit it.
    pub(crate) emission: FlatArray<f32>,
    pub(crate) tags: Option<TagTable>,
}

impl Hmm {
    /// The kind of this model in model files.
    pub const KIND: &str = "hmm";

    /// Default parameters, to be changed by setters.
    pub fn params() -> HmmParams {
        HmmParams::default()
    }

    /// The parameters that the model was fitted with.
    pub fn fitted_with(&self) -> &Valid<HmmParams> {
        &self.params
    }

    /// The preprocessing and the vocabulary.
    pub fn lexicon(&self) -> &Lexicon {
        &self.lexicon
    }

    /// Facts about the training, which are saved with the model.
    pub fn facts(&self) -> &Map<String, Value> {
        &self.facts
    }

    /// Adds a fact that is saved with the model.
    pub fn add_fact(&mut self, name: &str, value: impl Into<Value>) {
        self.facts.insert(name.to_owned(), value.into());
    }

    /// The number of trained weights or probabilities.
    pub fn n_weights(&self) -> usize {
        match &self.weights {
            Some(weights) => weights.len(),
            None => {
                let n = self.space.n_states();
                n + n * n
                    + self.emission.len()
                    + self.tags.as_ref().map_or(0, |tags| tags.len() * n)
            }
        }
    }

    /// Whether any state can emit a word.
    pub fn can_emit(&self, word: WordId) -> bool {
        self.space.slot(word).is_some()
    }
}

impl Hmm {
    /// The model of some probabilities; `weights` are those of networks.
    pub(crate) fn new(
        params: Valid<HmmParams>,
        lexicon: Lexicon,
        facts: Map<String, Value>,
        space: StateSpace,
        weights: Option<Vec<f32>>,
        mut tables: Tables<f32>,
        tags: Option<TagTable>,
    ) -> Hmm {
        reserve_unknown_share(&space, &mut tables);
        if let Some(lists) = KeptLists::all(&space).filter(|_| tables.lists.is_none()) {
            tables.emission = lists.gather(&tables.emission, space.k);
        }
        let blocks = match tables.factors {
            Some(factors) => TransitionBlocks::from_factors(factors, &space),
            None => TransitionBlocks::from_rows(&tables.transition, &space),
        };
        let (start, emission) = (tables.start.into(), tables.emission.into());
        Hmm { params, lexicon, facts, space, weights, start, blocks, emission, tags }
    }

    /// The networks that compute the probabilities from the weights.
    pub(crate) fn network(&self) -> Neural<f32> {
        let n_tags = self.tags.as_ref().map_or(0, TagTable::len);
        Hmm::network_of(&self.params, &self.space, &self.lexicon, n_tags)
    }

    /// The networks of a model with some parameters.
    pub(crate) fn network_of(
        params: &HmmParams,
        space: &StateSpace,
        lexicon: &Lexicon,
        n_tags: usize,
    ) -> Neural<f32> {
        let words = space.words().iter();
        let spellings: Vec<&str> = words.map(|&word| lexicon.vocab.word(word)).collect();
        Neural::new(params, space, &spellings, n_tags)
    }
}
