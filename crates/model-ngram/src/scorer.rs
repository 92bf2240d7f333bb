//! Scoring of running text: back-off along the history, and the unigram cache.

use crate::params::MAX_ORDER;
use crate::trie::Trie;
use latens_corpus::WordId;
use latens_model::Scorer;
use std::collections::{HashMap, VecDeque};

/// Words that matter for the next prediction, most recent first, and their back-off weights.
#[derive(Clone, Copy)]
pub(crate) struct History {
    words: [u32; MAX_ORDER],
    /// `backoffs[k]` is ln γ of the history that consists of the last k + 1 words.
    backoffs: [f32; MAX_ORDER],
    length: usize,
}

impl History {
    /// History at the start of a sentence.
    pub(crate) fn begin(trie: &Trie) -> History {
        let begin = trie.n_words();
        let mut history = History { words: [0; MAX_ORDER], backoffs: [0.0; MAX_ORDER], length: 0 };
        if trie.order() > 1 {
            history.words[0] = begin as u32;
            history.backoffs[0] = trie.levels[0].backoffs[begin];
            history.length = 1;
        }
        history
    }

    /// Returns ln p(word | history), and the history after `word`.
    ///
    /// The probability is that of the longest known n-gram that ends in `word`, times γ of every
    /// longer history. A history that is not a known n-gram has γ = 1 and is dropped.
    #[inline]
    pub(crate) fn read(&self, trie: &Trie, word: u32) -> (f64, History) {
        let order = trie.order();
        let mut next = History { words: [0; MAX_ORDER], backoffs: [0.0; MAX_ORDER], length: 0 };
        let mut node = word as usize;
        let mut log_prob = trie.levels[0].log_probs[node];
        let mut matched = 1;
        if order > 1 {
            next.push(word, trie.levels[0].backoffs[node]);
        }
        while matched < order && matched <= self.length {
            let before = self.words[matched - 1];
            let Some(child) = trie.child(matched, node, before) else { break };
            node = child;
            matched += 1;
            let level = &trie.levels[matched - 1];
            log_prob = level.log_probs[node];
            if matched < order {
                next.push(before, level.backoffs[node]);
            }
        }
        let backed_off = self.backoffs.get(matched - 1..self.length).unwrap_or(&[]);
        let log_prob =
            f64::from(log_prob) + backed_off.iter().map(|&gamma| f64::from(gamma)).sum::<f64>();
        (log_prob, next)
    }

    #[inline]
    fn push(&mut self, word: u32, backoff: f32) {
        self.words[self.length] = word;
        self.backoffs[self.length] = backoff;
        self.length += 1;
    }
}

/// Counts of the most recent words, across sentences.
pub(crate) struct Cache {
    weight: f64,
    size: usize,
    words: VecDeque<u32>,
    counts: HashMap<u32, u32>,
}

impl Cache {
    pub(crate) fn new(weight: f64, size: usize) -> Cache {
        // A model file may contain any size, so memory is allocated only as needed.
        Cache { weight, size, words: VecDeque::new(), counts: HashMap::new() }
    }

    /// ln((1 − λ) p(word) + λ n(word)/n) with the counts of the cache; ln p(word) if the cache is empty.
    fn interpolate(&self, log_prob: f64, word: u32) -> f64 {
        if self.words.is_empty() {
            return log_prob;
        }
        let count = self.counts.get(&word).copied().unwrap_or(0);
        let cached = f64::from(count) / self.words.len() as f64;
        ((1.0 - self.weight) * log_prob.exp() + self.weight * cached).ln()
    }

    fn push(&mut self, word: u32) {
        self.words.push_back(word);
        *self.counts.entry(word).or_default() += 1;
        if self.words.len() > self.size {
            let oldest = self.words.pop_front().expect("a word was just added");
            let count = self.counts.get_mut(&oldest).expect("every word in the cache has a count");
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&oldest);
            }
        }
    }
}

/// Scorer of running text. The history restarts with each sentence; the cache does not.
pub(crate) struct NgramScorer<'a> {
    pub(crate) trie: &'a Trie,
    pub(crate) history: History,
    pub(crate) cache: Option<Cache>,
}

impl Scorer for NgramScorer<'_> {
    fn read(&mut self, word: WordId) -> f64 {
        assert!(
            word.index() < self.trie.n_words(),
            "the word must be in the vocabulary of the model"
        );
        let (mut log_prob, history) = self.history.read(self.trie, word.0);
        if let Some(cache) = &mut self.cache {
            log_prob = cache.interpolate(log_prob, word.0);
            cache.push(word.0);
        }
        self.history = if word == WordId::EOS { History::begin(self.trie) } else { history };
        log_prob
    }

    fn next_log_probs(&mut self, out: &mut [f64]) {
        assert_eq!(out.len(), self.trie.n_words(), "`out` must have one entry per word");
        for (word, out) in out.iter_mut().enumerate() {
            let (log_prob, _) = self.history.read(self.trie, word as u32);
            *out = match &self.cache {
                Some(cache) => cache.interpolate(log_prob, word as u32),
                None => log_prob,
            };
        }
    }
}
