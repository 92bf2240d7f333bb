//! The filtered distribution of states in log space, for words that underflow in single precision.

use crate::model::Hmm;
use crate::space::state_set::StateSet;
use latens_corpus::WordId;
use latens_math::log_sum_exp;

/// ln p(z_t | x_1 … x_t), computed on demand from the words since the last time it was known. A sentence that never
/// underflows costs one stored word per token.
pub(crate) struct LogFilter<'a> {
    hmm: &'a Hmm,
    /// Known log-probabilities of states; `None` at the start of a sentence.
    known: Option<(StateSet<'a>, Vec<f64>)>,
    /// The words since then. All of them are possible.
    pending: Vec<WordId>,
}

impl<'a> LogFilter<'a> {
    pub(crate) fn new(hmm: &'a Hmm) -> LogFilter<'a> {
        LogFilter { hmm, known: None, pending: Vec::new() }
    }

    /// Starts a new sentence.
    pub(crate) fn restart(&mut self) {
        self.known = None;
        self.pending.clear();
    }

    /// Replaces the pending words, which would grow without limit in running text, by their filtered distribution.
    pub(crate) fn forget_words(&mut self, states: StateSet<'a>, alpha: &[f32]) {
        if !self.pending.is_empty() {
            self.pending.clear();
            self.known = Some((states, logs(alpha)));
        }
    }

    /// Appends a word that is possible.
    pub(crate) fn push(&mut self, word: WordId) {
        self.pending.push(word);
    }

    /// Appends a word that some state may emit, and returns its log-probability. After an impossible word, its states
    /// have the probabilities of a sentence start.
    pub(crate) fn read(&mut self, word: WordId) -> f64 {
        self.catch_up();
        let log_prob = self.step(word);
        if log_prob == f64::NEG_INFINITY {
            self.known = None;
            if self.step(word) == f64::NEG_INFINITY
                && let Some((_, alpha)) = &mut self.known
            {
                let share = -(alpha.len() as f64).ln();
                alpha.fill(share);
            }
        }
        log_prob
    }

    /// p(z_t | x_1 … x_t) of the states after [`LogFilter::read`].
    pub(crate) fn alpha(&self) -> Vec<f32> {
        let known = self.known.iter().flat_map(|(_, alpha)| alpha);
        known.map(|log| log.exp() as f32).collect()
    }

    /// ln p(z_{t+1} | x_1 … x_t) for some states.
    pub(crate) fn incoming(&mut self, states: StateSet<'_>) -> Vec<f64> {
        self.catch_up();
        let Some((before, alpha)) = &self.known else { return logs(&self.hmm.start_of(states)) };
        let pairs = self.hmm.blocks.log_pairs(&self.hmm.space, *before, states);
        let n = pairs.len() / alpha.len();
        let column = |j: usize| -> Vec<f64> {
            alpha.iter().zip(pairs.iter().skip(j).step_by(n)).map(|(a, b)| a + b).collect()
        };
        (0..n).map(|j| log_sum_exp(&column(j))).collect()
    }

    fn catch_up(&mut self) {
        for word in std::mem::take(&mut self.pending) {
            self.step(word);
        }
    }

    /// Computes the log-probabilities of states after a word, and returns that of the word.
    fn step(&mut self, word: WordId) -> f64 {
        let (states, local) = self.hmm.emitters(word).expect("a word that some state may emit");
        let mut alpha = self.incoming(states);
        alpha.iter_mut().zip(&*local).for_each(|(alpha, &b)| *alpha += f64::from(b).ln());
        let log_sum = log_sum_exp(&alpha);
        if log_sum > f64::NEG_INFINITY {
            alpha.iter_mut().for_each(|alpha| *alpha -= log_sum);
        }
        self.known = Some((states, alpha));
        log_sum
    }
}

fn logs(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value).ln()).collect()
}
