//! Scores of the tags of the words of a sentence.

use super::tagger::FeatureTagger;
use super::word_scores::WordScores;
use crate::tagging::features::template::{Template, groups, word_of};
use crate::tagging::heads::local::LocalHead;
use latens_corpus::WordId;
use latens_math::get_or_compute;
use latens_model::{FeatureRows, TagError};
use std::borrow::Cow;

impl FeatureTagger {
    /// Scores of the tags of each word; row-major, words × tags.
    pub(crate) fn scores(
        &self,
        words: &[&str],
        pos: Option<&[&str]>,
    ) -> Result<Vec<f32>, TagError> {
        self.check_pos(pos)?;
        let normal = self.normalized(words);
        let normal: Vec<&str> = normal.iter().map(|word| &**word).collect();
        let rows: Vec<FeatureRows> =
            self.encoders.iter().map(|encoder| encoder.rows(&normal)).collect();
        Ok(self.scores_of(&normal, pos, rows.iter()))
    }

    /// Fails if the tagger needs parts of speech and there are none.
    pub(crate) fn check_pos(&self, pos: Option<&[&str]>) -> Result<(), TagError> {
        match (self.params.pos_column, pos) {
            (Some(column), None) => Err(TagError::NoPartsOfSpeech { column: column + 1 }),
            _ => Ok(()),
        }
    }

    /// The words after preprocessing.
    pub(crate) fn normalized<'w>(&self, words: &[&'w str]) -> Vec<Cow<'w, str>> {
        words.iter().map(|word| self.lexicon.preprocessing.normalize_word(word)).collect()
    }

    /// [`FeatureTagger::scores`] of words after preprocessing, given the rows of each encoder.
    pub(crate) fn scores_of<'r>(
        &self,
        words: &[&str],
        pos: Option<&[&str]>,
        rows: impl Iterator<Item = &'r FeatureRows>,
    ) -> Vec<f32> {
        let n_tags = self.tags.internal.len();
        let width = if self.params.has_network() { self.params.n_hidden } else { n_tags };
        let mut scores = vec![0.0; words.len() * width];
        if self.params.has_lexical() {
            self.add_attributes(words, pos, &mut scores);
        }
        for (encoder, rows) in self.encoders.iter().zip(rows) {
            encoder.add(rows, self.params.window, width, &mut scores);
        }
        if self.params.has_network() {
            let head = LocalHead::fitted(n_tags, self.params.n_hidden, &self.weights.network);
            return scores.chunks_exact(width).flat_map(|row| head.logits(row)).collect();
        }
        scores
    }

    /// Cached scores of frequent words. Loops on several threads call this first: otherwise, each thread computes them.
    pub(crate) fn word_scores(&self) -> &WordScores {
        get_or_compute(&self.word_scores, || {
            WordScores::new(&self.lexicon.vocab, &self.weights, self.tags.internal.len())
        })
    }

    fn add_attributes(&self, words: &[&str], pos: Option<&[&str]>, scores: &mut [f32]) {
        let pos = pos.filter(|_| self.params.pos_column.is_some());
        let (template, n_tags) = (Template::new(words, pos), self.tags.internal.len());
        let known = self.word_scores();
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
