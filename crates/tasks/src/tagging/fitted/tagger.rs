//! A fitted tagger.

use super::direct::Direct;
use super::fitted_encoder::FittedEncoder;
use super::tag_names::TagNames;
use super::word_scores::WordScores;
use crate::tagging::heads::chain::LogSentence;
use crate::tagging::params::{Kind, TaggerParams};
use crate::tagging::weights::fitted::Weights;
use latens_corpus::Lexicon;
use latens_math::chain::log_smooth;
use latens_math::softmax;
use latens_model::{Matrix, TagError, Valid};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::OnceLock;

/// A tagger whose features are the words, their letters and neighbors, and the features of any number of encoders.
pub struct FeatureTagger {
    pub(crate) params: Valid<TaggerParams>,
    pub(crate) lexicon: Lexicon,
    pub(crate) facts: Map<String, Value>,
    pub(crate) tags: TagNames,
    pub(crate) weights: Weights,
    pub(crate) encoders: Vec<FittedEncoder>,
    /// Words with a fixed tag.
    pub(crate) direct: Direct,
    /// Computed on first use.
    pub(crate) word_scores: OnceLock<WordScores>,
}

impl fmt::Debug for FeatureTagger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("FeatureTagger");
        debug
            .field("params", &*self.params)
            .field("tags", &self.tags.internal)
            .finish_non_exhaustive()
    }
}

impl FeatureTagger {
    /// Name of this kind of model in files.
    pub const KIND: &str = "tagger";

    /// Default parameters, to be changed by setters.
    pub fn params() -> TaggerParams {
        TaggerParams::default()
    }

    /// Parameters with which the tagger was fitted.
    pub fn fitted_with(&self) -> &Valid<TaggerParams> {
        &self.params
    }

    /// Lexicon of the training text; its words are as written.
    pub fn lexicon(&self) -> &Lexicon {
        &self.lexicon
    }

    /// Facts about training, saved with the model.
    pub fn facts(&self) -> &Map<String, Value> {
        &self.facts
    }

    /// Adds a fact about training.
    pub fn add_fact(&mut self, name: &str, value: impl Into<Value>) {
        self.facts.insert(name.to_owned(), value.into());
    }

    /// Number of weights.
    pub fn n_weights(&self) -> usize {
        let Weights { values, transitions, network, .. } = &self.weights;
        let encoders: usize = self.encoders.iter().map(|encoder| encoder.weights.len()).sum();
        values.len() + transitions.len() + network.len() + encoders
    }

    /// Name of each encoder, and the fraction of the tokens of the training text that it knows.
    pub fn encoder_coverage(&self) -> impl Iterator<Item = (&str, f64)> {
        self.encoders.iter().map(|encoder| (&*encoder.info.name, encoder.info.known))
    }

    /// Posterior probabilities: one row per word, one column per tag of [`FeatureTagger::internal_tags`].
    pub fn marginals(&self, words: &[&str], pos: Option<&[&str]>) -> Result<Matrix<f32>, TagError> {
        let n_tags = self.tags.internal.len();
        if words.is_empty() {
            return Ok(Matrix::zeros(0, n_tags));
        }
        let mut scores = self.scores(words, pos)?;
        if self.params.kind == Kind::Local {
            scores.chunks_exact_mut(n_tags).for_each(|row| _ = softmax(row));
            return Ok(Matrix::from_vec(words.len(), n_tags, scores));
        }
        let wide = |row: &[f32]| row.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
        let rows = scores.chunks_exact(n_tags).map(wide).collect();
        let transitions = wide(&self.weights.transitions);
        let chain = LogSentence { scores: rows, transitions: &transitions };
        // The marginals replace the scores.
        let narrow = |step: usize, nodes: &[f64]| {
            let row = &mut scores[step * n_tags..][..n_tags];
            row.iter_mut().zip(nodes).for_each(|(to, &p)| *to = p as f32);
        };
        log_smooth(&chain, narrow, |_, _| ());
        Ok(Matrix::from_vec(words.len(), n_tags, scores))
    }

    /// Tags that the model predicts. Tags of spans are in the scheme of its parameters, and [`Tagger::tags`](latens_model::Tagger::tags) in
    /// IOB2.
    pub fn internal_tags(&self) -> &[String] {
        &self.tags.internal
    }

    /// The tag of a word, if it is fixed.
    pub(crate) fn direct_tag(&self, word: &str) -> Option<u32> {
        self.direct.tag(&self.lexicon.preprocessing.normalize_word(word))
    }
}
