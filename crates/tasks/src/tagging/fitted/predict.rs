//! Predictions of a tagger for one sentence, or for many whose features are computed together.

use super::on_gpu::FeatureTaggerOnGpu;
use super::tagger::FeatureTagger;
use crate::tagging::params::Kind;
use latens_math::chain::max_sum;
use latens_model::{
    DeviceError, FeatureRows, GpuTagger, Matrix, TagError, TagInput, TagOutputs, Tagged, Tagger,
};
use rayon::prelude::*;
use std::borrow::Cow;
use std::convert::Infallible;

/// Maximum number of values of encoders in memory: 128 MiB with their columns.
const MAX_VALUES: usize = 1 << 24;

impl Tagger for FeatureTagger {
    fn tags(&self) -> &[String] {
        &self.tags.returned
    }

    fn tag(&self, words: &[&str]) -> Result<Vec<u32>, TagError> {
        Ok(self.best_tags(words, &self.scores(words, None)?))
    }

    fn tag_all_with(
        &self,
        sentences: &[TagInput<'_>],
        outputs: TagOutputs,
    ) -> Vec<Result<Tagged, TagError>> {
        let encoders = self.encoders.iter().map(|encoder| &*encoder.encoder.model);
        let encode = |words: &[Vec<&str>]| {
            Ok::<_, Infallible>(encoders.clone().map(|encoder| encoder.encode_all(words)).collect())
        };
        let Ok(tagged) = self.tag_parts(sentences, outputs, encode);
        tagged
    }

    fn on_gpu(&self) -> Option<Result<Box<dyn GpuTagger + '_>, DeviceError>> {
        let on_gpu = FeatureTaggerOnGpu::open(self).transpose()?;
        Some(on_gpu.map(|on_gpu| -> Box<dyn GpuTagger + '_> { Box::new(on_gpu) }))
    }

    fn pos_column(&self) -> Option<usize> {
        self.params.pos_column
    }

    fn tag_with_pos(&self, words: &[&str], pos: &[&str]) -> Result<Vec<u32>, TagError> {
        Ok(self.best_tags(words, &self.scores(words, Some(pos))?))
    }

    fn tag_marginals(&self, words: &[&str], pos: Option<&[&str]>) -> Result<Matrix<f32>, TagError> {
        Ok(self.returned_marginals(words, &self.scores(words, pos)?))
    }

    fn tag_n_best(
        &self,
        words: &[&str],
        pos: Option<&[&str]>,
        n: usize,
    ) -> Result<Vec<(Vec<u32>, f64)>, TagError> {
        Ok(self.n_best(words, &self.scores(words, pos)?, n))
    }

    fn n_seen(&self, word: &str) -> u64 {
        // The vocabulary keeps all words, so `<unk>` in it is the literal word.
        let word = self.lexicon.preprocessing.normalize_word(word);
        self.lexicon.vocab.get(&word).map_or(0, |id| self.lexicon.vocab.count(id))
    }
}

impl FeatureTagger {
    /// Number of words that are encoded together.
    fn words_at_once(&self) -> usize {
        let values = self.encoders.iter().map(|encoder| encoder.encoder.model.values_per_token());
        (MAX_VALUES / values.sum::<usize>().max(1)).clamp(256, 1 << 16)
    }

    /// Tags sentences in parts whose rows fit in memory, given the rows of each encoder for the words of a part.
    pub(super) fn tag_parts<E>(
        &self,
        sentences: &[TagInput<'_>],
        outputs: TagOutputs,
        mut encode: impl FnMut(&[Vec<&str>]) -> Result<Vec<Vec<FeatureRows>>, E>,
    ) -> Result<Vec<Result<Tagged, TagError>>, E> {
        if self.params.has_lexical() {
            self.word_scores();
        }
        let mut tagged = Vec::with_capacity(sentences.len());
        for part in TagInput::parts(sentences, self.words_at_once()) {
            let normal: Vec<Vec<Cow<'_, str>>> =
                part.par_iter().map(|sentence| self.normalized(sentence.words)).collect();
            let words: Vec<Vec<&str>> =
                normal.iter().map(|words| words.iter().map(|word| &**word).collect()).collect();
            let rows = encode(&words)?;
            tagged.extend(self.tag_part(part, &words, &rows, outputs));
        }
        Ok(tagged)
    }

    /// Tags sentences, given their words after preprocessing and the rows of each encoder.
    fn tag_part(
        &self,
        sentences: &[TagInput<'_>],
        words: &[Vec<&str>],
        rows: &[Vec<FeatureRows>],
        outputs: TagOutputs,
    ) -> Vec<Result<Tagged, TagError>> {
        let tag = |i: usize| -> Result<Tagged, TagError> {
            let TagInput { words: written, pos } = sentences[i];
            self.check_pos(pos)?;
            let scores = self.scores_of(&words[i], pos, rows.iter().map(|rows| &rows[i]));
            Ok(self.tagged(written, &scores, outputs))
        };
        (0..sentences.len()).into_par_iter().map(tag).collect()
    }

    /// The outputs for a sentence, given its scores.
    fn tagged(&self, words: &[&str], scores: &[f32], outputs: TagOutputs) -> Tagged {
        let n_best = match outputs.n_best {
            0 => Vec::new(),
            n => self.n_best(words, scores, n),
        };
        let first = n_best.first().map(|(tags, _)| tags.clone());
        let tags = first.unwrap_or_else(|| self.best_tags(words, scores));
        let marginals = outputs.marginals.then(|| self.returned_marginals(words, scores));
        Tagged::new(tags, marginals, n_best)
    }

    /// The tag of each word in the best sequence.
    fn best_tags(&self, words: &[&str], scores: &[f32]) -> Vec<u32> {
        let n_tags = self.tags.internal.len();
        let found = match self.params.kind {
            Kind::Crf => max_sum(scores, &self.weights.transitions, n_tags),
            Kind::Local => {
                let rows = words.iter().zip(scores.chunks_exact(n_tags));
                rows.map(|(word, scores)| self.direct_tag(word).unwrap_or_else(|| best(scores)))
                    .collect()
            }
        };
        self.tags.write(&found)
    }
}

/// Index of the largest score; the first one of ties.
fn best(scores: &[f32]) -> u32 {
    let larger = |max: (usize, f32), (i, &s): (usize, &f32)| if s > max.1 { (i, s) } else { max };
    scores.iter().enumerate().fold((0, f32::NEG_INFINITY), larger).0 as u32
}
