//! The filtered distribution of states, word by word.

use super::log_filter::LogFilter;
use crate::fitted::together::products::flush;
use crate::model::Hmm;
use crate::space::state_set::StateSet;
use latens_corpus::WordId;
use latens_math::chain::SMALLEST_SCALE;
use latens_math::{BlockRef, dot_wide, log_sum_exp};
use latens_model::{LanguageModel, Scorer};
use std::borrow::Cow;

/// p(z_t | x_1 … x_t) for the states that may emit x_t.
pub(super) struct HmmScorer<'a> {
    hmm: &'a Hmm,
    /// In single precision, which may lose unlikely states; `None` at the start of a sentence.
    filtered: Option<(StateSet<'a>, Vec<f32>)>,
    /// The same without underflow, computed where a word needs it.
    log_filter: LogFilter<'a>,
}

impl Scorer for HmmScorer<'_> {
    fn read(&mut self, word: WordId) -> f64 {
        self.step(word, None)
    }

    fn next_log_probs(&mut self, out: &mut [f64]) {
        let space = &self.hmm.space;
        assert_eq!(out.len(), self.hmm.n_words(), "one entry per word");
        out.fill(f64::NEG_INFINITY);
        for cluster in 0..space.n_clusters() {
            let states = StateSet::Cluster(cluster);
            let incoming = self.incoming(states, None);
            let mut log_incoming: Option<Vec<f64>> = None;
            for slot in space.slots(cluster) {
                let local = self.hmm.emission_of(slot);
                let out = &mut out[space.words()[slot].index()];
                let sum = dot(&space.pick(slot, &incoming), local);
                if is_enough(sum, local) {
                    *out = sum.ln();
                } else if local.iter().any(|&b| b > 0.0) {
                    let filter = &mut self.log_filter;
                    let incoming = log_incoming.get_or_insert_with(|| filter.incoming(states));
                    *out = log_sum_exp(&log_products(&space.pick(slot, incoming), local));
                }
            }
        }
    }
}

impl<'a> HmmScorer<'a> {
    pub(super) fn new(hmm: &'a Hmm) -> HmmScorer<'a> {
        HmmScorer { hmm, filtered: None, log_filter: LogFilter::new(hmm) }
    }

    /// The states of the last word; `None` at the start of a sentence.
    pub(super) fn states(&self) -> Option<StateSet<'a>> {
        self.filtered.as_ref().map(|(states, _)| *states)
    }

    /// Their probabilities given all words so far.
    pub(super) fn filtered(&self) -> &[f32] {
        self.filtered.as_ref().map_or(&[], |(_, alpha)| alpha)
    }

    /// Computes α_t = (α_{t−1} · A[C_{t−1}, C_t]) ∘ b(x_t), whose sum is p(x_t | x_1 … x_{t−1}). After an impossible
    /// word, the states that may emit it have the probabilities of a sentence start; after a word that no state
    /// emits, a new sentence starts.
    ///
    /// `pairs` are the transitions to the states of `word`, if already computed.
    pub(super) fn step(&mut self, word: WordId, pairs: Option<&[f32]>) -> f64 {
        assert!(word.index() < self.hmm.n_words(), "{word:?} is not in the vocabulary");
        match self.hmm.emitters(word) {
            Some((states, _)) => self.step_from(word, &self.incoming(states, pairs)),
            None => {
                self.filtered = None;
                self.log_filter.restart();
                f64::NEG_INFINITY
            }
        }
    }

    /// [`HmmScorer::step`], given α_{t−1} · A[C_{t−1}, C_t].
    pub(super) fn step_from(&mut self, word: WordId, incoming: &[f32]) -> f64 {
        let (states, local) = self.hmm.emitters(word).expect("some states emit the word");
        let sum = dot(incoming, &local);
        let (alpha, log_prob) = if is_enough(sum, &local) {
            self.log_filter.push(word);
            (scaled_products(incoming, &local, 1.0 / sum), sum.ln())
        } else {
            let log_prob = self.log_filter.read(word);
            (self.log_filter.alpha(), log_prob)
        };
        self.filtered = Some((states, alpha));
        if word == WordId::EOS {
            self.end_sentence();
        }
        log_prob
    }

    fn end_sentence(&mut self) {
        if self.hmm.forgets_sentences() {
            self.filtered = None;
            self.log_filter.restart();
        } else if let Some((states, alpha)) = &self.filtered {
            self.log_filter.forget_words(*states, alpha);
        }
    }

    /// p(z_{t+1} | x_1 … x_t) for some states. Values below 10⁻²⁸ may become zero.
    fn incoming(&self, states: StateSet<'_>, pairs: Option<&[f32]>) -> Vec<f32> {
        let Some((before, alpha)) = &self.filtered else { return self.hmm.start_of(states) };
        let pairs = match pairs {
            Some(pairs) => Cow::Borrowed(pairs),
            None => self.hmm.blocks.pairs(&self.hmm.space, *before, states),
        };
        let mut sums = vec![0.0; pairs.len() / alpha.len()];
        let block = BlockRef::new(&pairs, sums.len(), 0..alpha.len(), 0..sums.len());
        block.times_rows(alpha, &mut sums);
        sums
    }
}

/// Σ incoming ∘ local: [`dot_wide`] with the vector instructions of the processor.
fn dot(incoming: &[f32], local: &[f32]) -> f64 {
    latens_math::vectorized(
        #[inline(always)]
        || dot_wide(incoming, local),
    )
}

/// incoming ∘ local times a factor, with tiny values set to zero.
fn scaled_products(incoming: &[f32], local: &[f32], factor: f64) -> Vec<f32> {
    let mut out = vec![0.0; local.len()];
    latens_math::vectorized(
        #[inline(always)]
        || {
            for ((out, &a), &b) in out.iter_mut().zip(incoming).zip(local) {
                *out = flush((f64::from(a) * f64::from(b) * factor) as f32);
            }
        },
    );
    out
}

/// Whether the sum of the products of incoming and emission probabilities is exact enough, although tiny incoming ones
/// have become zero. It is compared with the word's most likely state, so that the rarity of the word does not matter.
fn is_enough(sum: f64, local: &[f32]) -> bool {
    let largest = || f64::from(local.iter().fold(0f32, |max, &b| max.max(b)));
    sum >= SMALLEST_SCALE || (sum > 0.0 && sum >= SMALLEST_SCALE * largest())
}

/// Logarithms of the products of incoming and emission probabilities.
fn log_products(log_incoming: &[f64], local: &[f32]) -> Vec<f64> {
    log_incoming.iter().zip(local).map(|(a, &b)| a + f64::from(b).ln()).collect()
}
