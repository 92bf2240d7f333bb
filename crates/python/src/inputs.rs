//! What models learn from besides text: word clusters, tags, and models to start from.

use crate::errors::{read_error, value_error};
use crate::model::Model;
use crate::shards::Ring;
use latens::brown::Brown;
use latens::corpus::{Corpus, TaggedSentences};
use latens::hmm::TaggedText;
use latens::lds::{HiddenState, Lds, RnnWeights};
use latens::model::WordClusters;
use latens::neural::FirstWeights;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// One string per word, sentence by sentence.
type Rows = Vec<Vec<String>>;

/// Inputs of a model of sentences. Each kind of model uses its own.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct SentenceInputs {
    /// Brown clusters for a hidden Markov model.
    clusters: Option<Model>,
    /// Words and their tags for a hidden Markov model.
    tags: Option<(Rows, Rows)>,
    /// A linear dynamical system for a recurrent network.
    init: Option<Init>,
    /// Processes that learn a hidden Markov model together.
    pub(crate) group: Option<Py<Ring>>,
    /// Whether words that occur once become unknown where nothing else is.
    pub(crate) unknown_words: bool,
}

/// A model to start from.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Init {
    model: Model,
    state: String,
    scale: f64,
    max_norm: f64,
}

impl SentenceInputs {
    /// The clusters of the words of a corpus.
    pub(crate) fn clusters(&self, corpus: &Corpus) -> PyResult<Option<WordClusters>> {
        let Some(model) = &self.clusters else { return Ok(None) };
        let Some(brown) = model.get().downcast_ref::<Brown>() else {
            return Err(wrong("clusters", model, "a Brown clustering"));
        };
        let own = &brown.lexicon().vocab;
        Ok(Some(brown.clusters().for_words(own, &corpus.lexicon.vocab)))
    }

    /// The tags of a corpus.
    pub(crate) fn tags(&self, corpus: &Corpus) -> PyResult<Option<TaggedText>> {
        let Some((words, tags)) = &self.tags else { return Ok(None) };
        let tagged = tagged_sentences(words, tags)?;
        TaggedText::of(&tagged, 1, corpus).map(Some).map_err(|error| value_error(&error))
    }

    /// The first weights of a network.
    pub(crate) fn first_weights(&self) -> PyResult<Option<FirstWeights<'_>>> {
        let Some(Init { model, state, scale, max_norm }) = &self.init else { return Ok(None) };
        let Some(lds) = model.get().downcast_ref::<Lds>() else {
            return Err(wrong("init", model, "a linear dynamical system"));
        };
        let state = match state.as_str() {
            "predicted" => HiddenState::Predicted,
            "filtered" => HiddenState::Filtered,
            _ => {
                let message =
                    format!("`init_state` must be 'predicted' or 'filtered', got '{state}'");
                return Err(PyValueError::new_err(message));
            }
        };
        let RnnWeights { dim, recurrent, input, output, bias } = lds.rnn_weights(state);
        let (vocab, scale, max_output_norm) = (&lds.lexicon().vocab, *scale, *max_norm);
        Ok(Some(FirstWeights {
            vocab,
            dim,
            recurrent,
            input,
            output,
            bias,
            scale,
            max_output_norm,
        }))
    }
}

/// Sentences of words and their tags.
pub(crate) fn tagged_sentences(
    words: &[Vec<String>],
    tags: &[Vec<String>],
) -> PyResult<TaggedSentences> {
    let rows = words.iter().zip(tags).map(|(words, tags)| words.iter().zip(tags));
    TaggedSentences::from_rows(rows).map_err(|error| read_error(&error))
}

fn wrong(name: &str, model: &Model, must: &str) -> PyErr {
    let found = model.get().description();
    PyValueError::new_err(format!("`{name}` must be {must}, got {found}"))
}
