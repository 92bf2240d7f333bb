//! A fitted tagger.

use super::direct::Direct;
use super::tag_names::TagNames;
use super::word_scores::WordScores;
use crate::tagging::features::encoder::{Encoder, EncoderInfo, standardize};
use crate::tagging::features::template::{Template, groups, word_of};
use crate::tagging::heads::chain::LogSentence;
use crate::tagging::heads::local::LocalHead;
use crate::tagging::params::{Kind, TaggerParams};
use crate::tagging::weights::fitted::Weights;
use latens_corpus::{Lexicon, WordId};
use latens_math::chain::{log_smooth, max_sum};
use latens_math::{get_or_compute, softmax};
use latens_model::{FeatureRows, Matrix, TagError, Tagger, Valid};
use serde_json::{Map, Value};
use std::borrow::Cow;
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

/// An encoder and the weights of its features.
pub(crate) struct FittedEncoder {
    pub(crate) encoder: Encoder,
    pub(crate) info: EncoderInfo,
    /// Means of the columns of a dense encoder.
    pub(crate) means: Vec<f32>,
    /// Row-major: positions of the window × columns × tags or hidden units.
    pub(crate) weights: Vec<f32>,
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

    /// Tags that the model predicts. Tags of spans are in the scheme of its parameters, and [`Tagger::tags`] in IOB2.
    pub fn internal_tags(&self) -> &[String] {
        &self.tags.internal
    }

    fn predict(&self, words: &[&str], pos: Option<&[&str]>) -> Result<Vec<u32>, TagError> {
        let scores = self.scores(words, pos)?;
        let n_tags = self.tags.internal.len();
        let found = match self.params.kind {
            Kind::Crf => max_sum(&scores, &self.weights.transitions, n_tags),
            Kind::Local => {
                let rows = words.iter().zip(scores.chunks_exact(n_tags));
                rows.map(|(word, scores)| self.direct_tag(word).unwrap_or_else(|| best(scores)))
                    .collect()
            }
        };
        Ok(self.tags.write(&found))
    }

    /// The tag of a word, if it is fixed.
    pub(crate) fn direct_tag(&self, word: &str) -> Option<u32> {
        self.direct.tag(&self.lexicon.preprocessing.normalize_word(word))
    }

    /// Scores of the tags of each word; row-major, words × tags.
    pub(crate) fn scores(
        &self,
        words: &[&str],
        pos: Option<&[&str]>,
    ) -> Result<Vec<f32>, TagError> {
        if let (Some(column), None) = (self.params.pos_column, pos) {
            return Err(TagError::NoPartsOfSpeech { column: column + 1 });
        }
        let normal: Vec<Cow<'_, str>> =
            words.iter().map(|word| self.lexicon.preprocessing.normalize_word(word)).collect();
        let normal: Vec<&str> = normal.iter().map(|word| &**word).collect();
        let words = &normal[..];
        let n_tags = self.tags.internal.len();
        let width = if self.params.has_network() { self.params.n_hidden } else { n_tags };
        let mut scores = vec![0.0; words.len() * width];
        if self.params.has_lexical() {
            self.add_attributes(words, pos, &mut scores);
        }
        for encoder in &self.encoders {
            encoder.add(words, self.params.window, width, &mut scores);
        }
        if self.params.has_network() {
            let head = LocalHead::fitted(n_tags, self.params.n_hidden, &self.weights.network);
            return Ok(scores.chunks_exact(width).flat_map(|row| head.logits(row)).collect());
        }
        Ok(scores)
    }

    fn add_attributes(&self, words: &[&str], pos: Option<&[&str]>, scores: &mut [f32]) {
        let pos = pos.filter(|_| self.params.pos_column.is_some());
        let (template, n_tags) = (Template::new(words, pos), self.tags.internal.len());
        let known = get_or_compute(&self.word_scores, || {
            WordScores::new(&self.lexicon.vocab, &self.weights, n_tags)
        });
        let vocab = &self.lexicon.vocab;
        // `<unk>` in the vocabulary is a literal word of the text, not a stand-in for unseen words.
        let id = |word: &&str| vocab.get(word).filter(|&id| id.index() > WordId::EOS.index());
        let ids: Vec<Option<WordId>> = words.iter().map(id).collect();
        let mut scratch = String::new();
        for (at, scores) in scores.chunks_exact_mut(n_tags).enumerate() {
            for group in groups(pos.is_some()) {
                let word = word_of(group, at, words.len()).and_then(|word| ids[word]);
                if let Some(sums) = word.and_then(|word| known.get(word, group)) {
                    scores.iter_mut().zip(sums).for_each(|(score, sum)| *score += sum);
                    continue;
                }
                template.attributes(group, at, &mut scratch, |name| self.weights.add(name, scores));
            }
        }
    }
}

impl FittedEncoder {
    /// Adds the scores of the features of each word of a sentence.
    pub(crate) fn add(&self, words: &[&str], window: usize, width: usize, scores: &mut [f32]) {
        let mut rows = FeatureRows::new();
        self.encoder.model.encode(words, &mut rows);
        let n_columns = self.info.n_features;
        let mut dense = vec![0.0; n_columns];
        for (at, (columns, values)) in rows.iter().enumerate().filter(|(_, row)| !row.0.is_empty())
        {
            let mut values = values;
            if self.info.is_dense {
                dense.fill(0.0);
                columns.iter().zip(values).for_each(|(&column, &x)| dense[column as usize] = x);
                standardize(&mut dense, &self.means, self.info.scale);
                values = &dense;
            }
            for position in 0..=2 * window {
                // The word that has this one at this position of its window.
                let Some(seen_by) = (at + window).checked_sub(position) else { continue };
                let Some(scores) = scores.get_mut(seen_by * width..(seen_by + 1) * width) else {
                    continue;
                };
                let weights = &self.weights[position * n_columns * width..][..n_columns * width];
                for (i, &value) in values.iter().enumerate() {
                    let column = if self.info.is_dense { i } else { columns[i] as usize };
                    let weights = &weights[column * width..][..width];
                    scores.iter_mut().zip(weights).for_each(|(score, w)| *score += value * w);
                }
            }
        }
    }
}

/// Index of the largest score; the first one of ties.
fn best(scores: &[f32]) -> u32 {
    let larger = |max: (usize, f32), (i, &s): (usize, &f32)| if s > max.1 { (i, s) } else { max };
    scores.iter().enumerate().fold((0, f32::NEG_INFINITY), larger).0 as u32
}

impl Tagger for FeatureTagger {
    fn tags(&self) -> &[String] {
        &self.tags.returned
    }

    fn tag(&self, words: &[&str]) -> Result<Vec<u32>, TagError> {
        self.predict(words, None)
    }

    fn pos_column(&self) -> Option<usize> {
        self.params.pos_column
    }

    fn tag_with_pos(&self, words: &[&str], pos: &[&str]) -> Result<Vec<u32>, TagError> {
        self.predict(words, Some(pos))
    }

    fn tag_marginals(&self, words: &[&str], pos: Option<&[&str]>) -> Result<Matrix<f32>, TagError> {
        self.returned_marginals(words, pos)
    }

    fn tag_n_best(
        &self,
        words: &[&str],
        pos: Option<&[&str]>,
        n: usize,
    ) -> Result<Vec<(Vec<u32>, f64)>, TagError> {
        self.n_best(words, pos, n)
    }

    fn n_seen(&self, word: &str) -> u64 {
        // The vocabulary keeps all words, so `<unk>` in it is the literal word.
        let word = self.lexicon.preprocessing.normalize_word(word);
        self.lexicon.vocab.get(&word).map_or(0, |id| self.lexicon.vocab.count(id))
    }
}
