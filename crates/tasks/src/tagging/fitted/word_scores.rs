//! Cached sums of the attribute weights of frequent words, which make up most of a text.

use crate::tagging::features::template::{Template, WORD_GROUPS, groups_of_word};
use crate::tagging::weights::fitted::Weights;
use latens_corpus::{Vocab, WordId};
use rayon::prelude::*;

/// Maximum number of cached values: 32 MiB.
const MAX_VALUES: usize = 8 << 20;

/// Scores of the most frequent words, as the word itself and as each neighbor.
pub(crate) struct WordScores {
    n_tags: usize,
    /// Row-major: words, in the order of their ids × groups × tags.
    scores: Vec<f32>,
}

impl WordScores {
    pub(crate) fn new(vocab: &Vocab, weights: &Weights, n_tags: usize) -> WordScores {
        let size = WORD_GROUPS * n_tags;
        let n_words = vocab.len().min(MAX_VALUES / size);
        let mut scores = vec![0.0; n_words * size];
        scores.par_chunks_mut(size).enumerate().for_each_init(
            String::new,
            |scratch, (word, scores)| {
                let words = ["", "", vocab.word(WordId::from(word)), "", ""];
                let template = Template::new(&words, None);
                for ((group, at), scores) in groups_of_word().zip(scores.chunks_exact_mut(n_tags)) {
                    template.attributes(group, at, scratch, |name| weights.add(name, scores));
                }
            },
        );
        WordScores { n_tags, scores }
    }

    /// Scores of a group of a word; `None` if the word is not cached.
    #[inline]
    pub(crate) fn get(&self, word: WordId, group: usize) -> Option<&[f32]> {
        let begin = (word.index() * WORD_GROUPS + group) * self.n_tags;
        self.scores.get(begin..begin + self.n_tags)
    }
}
