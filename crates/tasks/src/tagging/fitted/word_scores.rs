//! What the attributes of frequent words say of tags, added up once: most words of a text are among them.

use crate::tagging::features::template::{Template, WORD_GROUPS, groups_of_word};
use crate::tagging::weights::fitted::Weights;
use latens_corpus::{Vocab, WordId};
use rayon::prelude::*;

/// The most numbers that are kept: 32 MiB.
const MAX_NUMBERS: usize = 8 << 20;

/// For the most frequent words what they say, as the word itself and as each neighbour.
pub(crate) struct WordScores {
    n_tags: usize,
    /// By words, in the order of their ids; groups; tags.
    scores: Vec<f32>,
}

impl WordScores {
    pub(crate) fn new(vocab: &Vocab, weights: &Weights, n_tags: usize) -> WordScores {
        let size = WORD_GROUPS * n_tags;
        let n_words = vocab.len().min(MAX_NUMBERS / size);
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

    /// What a word says as a group; `None` if it is not among the frequent ones.
    #[inline]
    pub(crate) fn get(&self, word: WordId, group: usize) -> Option<&[f32]> {
        let begin = (word.index() * WORD_GROUPS + group) * self.n_tags;
        self.scores.get(begin..begin + self.n_tags)
    }
}
