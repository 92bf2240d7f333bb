//! A fitted tagger: what its features say of tags, and the tags of sentences.

use super::word_scores::WordScores;
use crate::tagging::features::encoders::{Encoder, Reading, standardize};
use crate::tagging::features::template::{Template, groups, word_of};
use crate::tagging::heads::chain::LogSentence;
use crate::tagging::heads::local::LocalHead;
use crate::tagging::params::{Kind, TaggerParams};
use crate::tagging::spans::Scheme;
use crate::tagging::weights::fitted::Weights;
use latens_corpus::{Lexicon, WordId};
use latens_math::chain::{log_smooth, max_sum};
use latens_math::softmax;
use latens_model::{FeatureRows, TagError, Tagger, Valid};
use latens_store::StringTable;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::OnceLock;

/// A tagger that looks at words, their letters and neighbours, and at what encoders know of them.
pub struct FeatureTagger {
    pub(crate) params: Valid<TaggerParams>,
    pub(crate) lexicon: Lexicon,
    pub(crate) facts: Map<String, Value>,
    pub(crate) tags: TagNames,
    pub(crate) weights: Weights,
    pub(crate) encoders: Vec<FittedEncoder>,
    /// Words that a local tagger need not look at, and their tags.
    pub(crate) direct: Direct,
    /// Made when first needed.
    pub(crate) word_scores: OnceLock<WordScores>,
}

/// The names of tags, inside and outside.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TagNames {
    /// Those that the tagger finds.
    pub(crate) own: Vec<String>,
    /// Those that it answers with: the same, or in IOB2 where they are tags of spans.
    pub(crate) written: Vec<String>,
    pub(crate) are_spans: bool,
}

/// An encoder, how to read it, and what its columns say.
pub(crate) struct FittedEncoder {
    pub(crate) encoder: Encoder,
    pub(crate) reading: Reading,
    pub(crate) means: Vec<f32>,
    /// By places around the word, columns, and tags or hidden units.
    pub(crate) weights: Vec<f32>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Direct {
    pub(crate) words: StringTable,
    pub(crate) tags: Vec<u16>,
}

impl TagNames {
    /// Names for spans are in the scheme that the tagger uses, whichever the text had.
    pub(crate) fn new(own: Vec<String>, are_spans: bool) -> TagNames {
        if !are_spans {
            return TagNames { written: own.clone(), own, are_spans };
        }
        let mut written = StringTable::from_iter(["O"]);
        for tag in own.iter().filter_map(|tag| Some(tag.split_once('-')?.1)) {
            written.intern(&format!("B-{tag}"));
            written.intern(&format!("I-{tag}"));
        }
        TagNames { written: written.iter().map(str::to_owned).collect(), own, are_spans }
    }

    /// What the tagger found, as it answers.
    fn write(&self, found: &[u32]) -> Vec<u32> {
        if !self.are_spans {
            return found.to_vec();
        }
        let names: Vec<&str> = found.iter().map(|&tag| self.own[tag as usize].as_str()).collect();
        let place = |name: String| {
            self.written.iter().position(|written| *written == name).expect("every span has names")
                as u32
        };
        Scheme::Iob2.write(&names).into_iter().map(place).collect()
    }
}

impl fmt::Debug for FeatureTagger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("FeatureTagger");
        debug.field("params", &*self.params).field("tags", &self.tags.own).finish_non_exhaustive()
    }
}

impl FeatureTagger {
    /// What the file calls this model.
    pub const KIND: &str = "tagger";

    /// The parameters it was fitted with.
    pub fn params(&self) -> &Valid<TaggerParams> {
        &self.params
    }

    /// The words of its training text, as they were written.
    pub fn lexicon(&self) -> &Lexicon {
        &self.lexicon
    }

    /// Facts about its training, which are saved with it.
    pub fn facts(&self) -> &Map<String, Value> {
        &self.facts
    }

    /// Adds a fact about its training.
    pub fn add_fact(&mut self, name: &str, value: impl Into<Value>) {
        self.facts.insert(name.to_owned(), value.into());
    }

    /// How many weights it has.
    pub fn n_weights(&self) -> usize {
        let Weights { values, transitions, network, .. } = &self.weights;
        let encoders: usize = self.encoders.iter().map(|encoder| encoder.weights.len()).sum();
        values.len() + transitions.len() + network.len() + encoders
    }

    /// For each encoder its name, and the share of the words of the training text that it knows.
    pub fn known_by_encoders(&self) -> impl Iterator<Item = (&str, f64)> {
        self.encoders.iter().map(|encoder| (&*encoder.reading.name, encoder.reading.known))
    }

    /// The probability of each of [`FeatureTagger::own_tags`] for each word.
    pub fn marginals(
        &self,
        words: &[&str],
        pos: Option<&[&str]>,
    ) -> Result<Vec<Vec<f32>>, TagError> {
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let mut scores = self.scores(words, pos)?;
        let n_tags = self.tags.own.len();
        if self.params.kind == Kind::Local {
            scores.chunks_exact_mut(n_tags).for_each(|row| _ = softmax(row));
            return Ok(scores.chunks_exact(n_tags).map(<[f32]>::to_vec).collect());
        }
        let wide = |row: &[f32]| row.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
        let rows = scores.chunks_exact(n_tags).map(wide).collect();
        let transitions = wide(&self.weights.transitions);
        let chain = LogSentence { scores: rows, transitions: &transitions };
        let mut marginals = vec![Vec::new(); words.len()];
        let narrow = |step: usize, nodes: &[f64]| {
            marginals[step] = nodes.iter().map(|&p| p as f32).collect();
        };
        log_smooth(&chain, narrow, |_, _| ());
        Ok(marginals)
    }

    /// The tags that the tagger finds, in the scheme of its parameters where they are of spans.
    pub fn own_tags(&self) -> &[String] {
        &self.tags.own
    }

    fn find(&self, words: &[&str], pos: Option<&[&str]>) -> Result<Vec<u32>, TagError> {
        let scores = self.scores(words, pos)?;
        let n_tags = self.tags.own.len();
        let found = match self.params.kind {
            Kind::Crf => max_sum(&scores, &self.weights.transitions, n_tags),
            Kind::Local => {
                let rows = words.iter().zip(scores.chunks_exact(n_tags));
                rows.map(|(word, scores)| self.direct.tag(word).unwrap_or_else(|| best(scores)))
                    .collect()
            }
        };
        Ok(self.tags.write(&found))
    }

    /// What the features say of the tags of each word.
    pub(crate) fn scores(
        &self,
        words: &[&str],
        pos: Option<&[&str]>,
    ) -> Result<Vec<f32>, TagError> {
        if let (Some(column), None) = (self.params.pos_column, pos) {
            return Err(TagError::NoPartsOfSpeech { column: column + 1 });
        }
        let n_tags = self.tags.own.len();
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
        let (template, n_tags) = (Template::new(words, pos), self.tags.own.len());
        let known = self
            .word_scores
            .get_or_init(|| WordScores::new(&self.lexicon.vocab, &self.weights, n_tags));
        let vocab = &self.lexicon.vocab;
        // A word that was never seen is not the word `<unk>`.
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
    /// Adds what the encoder's columns say of each word of a sentence.
    fn add(&self, words: &[&str], window: usize, width: usize, scores: &mut [f32]) {
        let mut rows = FeatureRows::new();
        self.encoder.model.encode(words, &mut rows);
        let n_columns = self.reading.n_features;
        let mut dense = vec![0.0; n_columns];
        for (at, (columns, values)) in rows.iter().enumerate().filter(|(_, row)| !row.0.is_empty())
        {
            let mut values = values;
            if self.reading.is_dense {
                dense.fill(0.0);
                columns.iter().zip(values).for_each(|(&column, &x)| dense[column as usize] = x);
                standardize(&mut dense, &self.means, self.reading.scale);
                values = &dense;
            }
            for place in 0..=2 * window {
                // The word that sees this one at this place.
                let Some(seen_by) = (at + window).checked_sub(place) else { continue };
                let Some(scores) = scores.get_mut(seen_by * width..(seen_by + 1) * width) else {
                    continue;
                };
                let weights = &self.weights[place * n_columns * width..][..n_columns * width];
                for (i, &value) in values.iter().enumerate() {
                    let column = if self.reading.is_dense { i } else { columns[i] as usize };
                    let weights = &weights[column * width..][..width];
                    scores.iter_mut().zip(weights).for_each(|(score, w)| *score += value * w);
                }
            }
        }
    }
}

impl Direct {
    fn tag(&self, word: &str) -> Option<u32> {
        self.words.find(word).map(|number| u32::from(self.tags[number as usize]))
    }
}

/// The first of the largest.
fn best(scores: &[f32]) -> u32 {
    let larger = |max: (usize, f32), (i, &s): (usize, &f32)| if s > max.1 { (i, s) } else { max };
    scores.iter().enumerate().fold((0, f32::NEG_INFINITY), larger).0 as u32
}

impl Tagger for FeatureTagger {
    fn tags(&self) -> &[String] {
        &self.tags.written
    }

    fn tag(&self, words: &[&str]) -> Result<Vec<u32>, TagError> {
        self.find(words, None)
    }

    fn pos_column(&self) -> Option<usize> {
        self.params.pos_column
    }

    fn tag_with_pos(&self, words: &[&str], pos: &[&str]) -> Result<Vec<u32>, TagError> {
        self.find(words, Some(pos))
    }

    fn n_seen(&self, word: &str) -> u64 {
        // The vocabulary keeps all words, so what it counts as `<unk>` are these letters themselves.
        self.lexicon.vocab.get(word).map_or(0, |id| self.lexicon.vocab.count(id))
    }
}
