use crate::params::MAX_ORDER;
use crate::trie::Trie;
use latens_corpus::WordId;
use latens_model::Scorer;
use std::collections::{HashMap, VecDeque};

/// The words that matter for the next prediction, the last one first, and what it costs to go
/// without them.
#[derive(Clone, Copy)]
pub(crate) struct History {
    words: [u32; MAX_ORDER],
    /// `backoffs[k]` is ln γ of the history of the last k + 1 words.
    backoffs: [f32; MAX_ORDER],
    length: usize,
}

impl History {
    /// The begin of a sentence.
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

    /// ln p(word | history), and the history with `word` in it.
    ///
    /// The longest known n-gram that ends in `word` has the answer; every longer history costs its
    /// ln γ. A history that is no known n-gram has γ = 1 and is forgotten.
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

/// How often each of the last words was read, whatever sentence it was in.
pub(crate) struct Cache {
    weight: f64,
    size: usize,
    words: VecDeque<u32>,
    counts: HashMap<u32, u32>,
}

impl Cache {
    pub(crate) fn new(weight: f64, size: usize) -> Cache {
        // The size is a parameter that a model file can have set to anything: room is made as needed.
        Cache { weight, size, words: VecDeque::new(), counts: HashMap::new() }
    }

    /// (1 − λ) p(word) + λ n(word)/n over the words held; p itself while none is.
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
            let count = self.counts.get_mut(&oldest).expect("every word held is counted");
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&oldest);
            }
        }
    }
}

/// Reads running text; each sentence begins afresh, but the cache goes on.
pub(crate) struct NgramScorer<'a> {
    pub(crate) trie: &'a Trie,
    pub(crate) history: History,
    pub(crate) cache: Option<Cache>,
}

impl Scorer for NgramScorer<'_> {
    fn read(&mut self, word: WordId) -> f64 {
        assert!(word.index() < self.trie.n_words(), "the word is of this model's vocabulary");
        let (mut log_prob, history) = self.history.read(self.trie, word.0);
        if let Some(cache) = &mut self.cache {
            log_prob = cache.interpolate(log_prob, word.0);
            cache.push(word.0);
        }
        self.history = if word == WordId::EOS { History::begin(self.trie) } else { history };
        log_prob
    }

    fn next_log_probs(&mut self, out: &mut [f64]) {
        assert_eq!(out.len(), self.trie.n_words(), "one entry a word");
        for (word, out) in out.iter_mut().enumerate() {
            let (log_prob, _) = self.history.read(self.trie, word as u32);
            *out = match &self.cache {
                Some(cache) => cache.interpolate(log_prob, word as u32),
                None => log_prob,
            };
        }
    }
}
