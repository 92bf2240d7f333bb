//! Posteriors and paths of any number of sentences in bounded memory.

use super::paths::paths;
use super::posteriors::posteriors;
use crate::fitted::posterior::{Emitters, Posterior, SentenceChain};
use crate::model::Hmm;
use rayon::prelude::*;

/// Number of states of a word from which sentences go together: smaller blocks stay in the cache.
const MIN_STATES: usize = if cfg!(test) { 2 } else { 256 };

/// Number of values to keep at a time, 128 MiB (192 MiB for paths), unless a single sentence needs more.
const MAX_VALUES: usize = if cfg!(test) { 1 << 15 } else { 1 << 25 };

/// Number of tokens with `k` states each whose values are kept at a time.
pub(crate) fn max_tokens(k: usize) -> usize {
    MAX_VALUES / k
}

/// The states of each word of a sentence; `None` if a word has no states.
pub(crate) type Words<'a> = Option<Vec<Emitters<'a>>>;

impl Hmm {
    /// Applies a function to the index and the posterior of each sentence, which is `None` for an impossible one.
    pub(crate) fn map_posteriors<'a, R: Send>(
        &'a self,
        sentences: Vec<Words<'a>>,
        finish: impl Fn(usize, Option<Posterior<'a>>) -> R + Sync,
    ) -> Vec<R> {
        let alone = |chain| self.chain_posterior(chain);
        self.map(sentences, alone, |batch| posteriors(self, batch), finish)
    }

    /// Applies a function to the index and the most likely path of each sentence, which is `None` for an impossible one.
    pub(crate) fn map_paths<'a, R: Send>(
        &'a self,
        sentences: Vec<Words<'a>>,
        finish: impl Fn(usize, Option<Vec<u32>>) -> R + Sync,
    ) -> Vec<R> {
        let alone = |chain| self.chain_path(&chain);
        self.map(sentences, alone, |batch| paths(self, batch), finish)
    }

    /// Whether sentences go together, because their words share blocks that are large enough.
    pub(crate) fn maps_together(&self) -> bool {
        self.space.lists.is_none() && self.space.k >= MIN_STATES
    }

    fn map<'a, T: Send, R: Send>(
        &'a self,
        sentences: Vec<Words<'a>>,
        alone: impl Fn(SentenceChain<'a>) -> Option<T> + Sync,
        together: impl Fn(Vec<Vec<Emitters<'a>>>) -> Vec<Option<T>>,
        finish: impl Fn(usize, Option<T>) -> R + Sync,
    ) -> Vec<R> {
        if !self.maps_together() {
            let each = |(idx, words): (usize, Words<'a>)| {
                finish(idx, words.and_then(|words| alone(self.chain_of(words))))
            };
            return sentences.into_par_iter().enumerate().map(each).collect();
        }
        let mut results = Vec::with_capacity(sentences.len());
        let mut sentences = sentences.into_iter().peekable();
        while sentences.peek().is_some() {
            let (mut batch, mut is_possible, mut n_values) = (Vec::new(), Vec::new(), 0);
            while let Some(words) = sentences.next_if(|words| {
                n_values += words.as_ref().map_or(0, Vec::len) * self.space.k;
                n_values <= MAX_VALUES || is_possible.is_empty()
            }) {
                is_possible.push(words.is_some());
                batch.extend(words);
            }
            let first = results.len();
            let mut found = together(batch).into_iter();
            let found: Vec<Option<T>> =
                is_possible.iter().map(|&is| if is { found.next()? } else { None }).collect();
            let found = found.into_par_iter().enumerate();
            results.par_extend(found.map(|(idx, found)| finish(first + idx, found)));
        }
        results
    }
}
