//! A batch of sentences.

use latens_corpus::WordId;
use std::cmp::Reverse;

/// Sentences that are processed together, optionally with one tag per word (but none for `<eos>`).
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch<'a> {
    pub(crate) sentences: Vec<&'a [WordId]>,
    pub(crate) tags: Vec<&'a [u32]>,
}

impl Batch<'_> {
    /// The number of tokens of all sentences.
    pub(crate) fn n_tokens(&self) -> usize {
        self.sentences.iter().map(|sentence| sentence.len()).sum()
    }
}

/// Some sentences of a batch, whose recursion runs on one thread unless they are all of it.
pub(crate) struct Part<'a> {
    /// Their indices in the batch.
    pub(crate) sentences: Vec<usize>,
    pub(crate) batch: Batch<'a>,
}

impl<'a> Batch<'a> {
    /// Splits a batch into `n` parts with about as many tokens each, and sentences of nearly the same length.
    pub(crate) fn parts(&self, n: usize) -> Vec<Part<'a>> {
        if n <= 1 {
            let sentences = (0..self.sentences.len()).collect();
            return vec![Part { sentences, batch: self.clone() }];
        }
        let mut order: Vec<usize> = (0..self.sentences.len()).collect();
        order.sort_by_key(|&sentence| Reverse(self.sentences[sentence].len()));
        let (mut rest, mut n_before) = (order.into_iter(), 0);
        let n_tokens = self.n_tokens();
        let part = |part: usize| {
            let mut sentences = vec![];
            while n_before < part * n_tokens / n || part == n {
                let Some(sentence) = rest.next() else { break };
                n_before += self.sentences[sentence].len();
                sentences.push(sentence);
            }
            let tags = sentences.iter().filter_map(|&sentence| self.tags.get(sentence).copied());
            let batch = Batch {
                tags: tags.collect(),
                sentences: sentences.iter().map(|&sentence| self.sentences[sentence]).collect(),
            };
            Part { sentences, batch }
        };
        (1..=n).map(part).filter(|part| !part.sentences.is_empty()).collect()
    }
}
