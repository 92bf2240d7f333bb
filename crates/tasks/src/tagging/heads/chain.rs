//! A linear-chain conditional random field: p(y | x) = exp(Σ_t s_t(y_t) + Σ_t θ(y_t, y_{t+1})) / Z(x), where s_t(j) is
//! the score of tag j at token t.
//!
//! −∂ ln p/∂s_t(j) = p(y_t = j | x) − [y_t = j], and −∂ ln p/∂θ(i, j) is the expected minus the observed number of
//! transitions from i to j.

use super::shard::Shard;
use crate::tagging::weights::layout::Layout;
use latens_math::Real;
use latens_math::chain::{Chain, LogChain, log_smooth, smooth};
use latens_math::linalg::{Accum, MatMut, MatRef, Par};
use latens_nn::multiply;

/// Transition weights, shared by all sentences.
pub(crate) struct ChainHead<T> {
    n_tags: usize,
    stride: usize,
    /// w(i, j), row-major.
    transitions: Vec<f64>,
    /// The largest w(i, j).
    largest: f64,
    /// exp(w(i, j) − largest), zero in the padding.
    pairs: Vec<T>,
}

impl<T: Real> ChainHead<T> {
    pub(crate) fn new(layout: &Layout, stride: usize) -> ChainHead<T> {
        let transitions = vec![0.0; layout.transitions.len()];
        let pairs = vec![T::zero(); stride * stride];
        ChainHead { n_tags: layout.n_tags, stride, transitions, largest: 0.0, pairs }
    }

    pub(crate) fn n_weights(&self) -> usize {
        self.transitions.len()
    }

    /// Sets the transition weights.
    pub(crate) fn prepare(&mut self, weights: &[f64]) {
        self.transitions.copy_from_slice(weights);
        self.largest = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let rows = self.pairs.chunks_exact_mut(self.stride);
        for (pairs, weights) in rows.zip(weights.chunks_exact(self.n_tags)) {
            let exps = weights.iter().map(|w| T::of((w - self.largest).exp()));
            pairs.iter_mut().zip(exps).for_each(|(pair, exp)| *pair = exp);
        }
    }

    /// Replaces the scores of a sentence by ∂(−ln p)/∂score and adds its loss and gradient to `shard`.
    pub(crate) fn run(&self, tags: &[u16], scores: &mut [T], shard: &mut Shard<T>) {
        shard.loss -= self.gold_score(tags, scores);
        for pair in tags.windows(2) {
            shard.gradient[usize::from(pair[0]) * self.n_tags + usize::from(pair[1])] -= 1.0;
        }
        let scratch = &mut shard.chain;
        let largest = self.exponentials(scores, &mut scratch.local);
        let chain = Sentence { local: &scratch.local, head: self };
        let Some(log_sum) = smooth(&chain, &mut scratch.smoothed) else {
            return self.run_in_log_space(tags, scores, shard);
        };
        let n = tags.len();
        shard.loss += log_sum + largest + (n - 1) as f64 * self.largest;
        for step in 0..n - 1 {
            let (left, scale, right) = scratch.smoothed.edge_factors(step);
            scratch.left.extend(left.iter().map(|&alpha| alpha * scale));
            scratch.right.extend_from_slice(right);
        }
        for ((step, scores), &tag) in scores.chunks_exact_mut(self.stride).enumerate().zip(tags) {
            scores.copy_from_slice(scratch.smoothed.nodes(step));
            scores[usize::from(tag)] -= T::one();
        }
    }

    fn gold_score(&self, tags: &[u16], scores: &[T]) -> f64 {
        let local = scores.chunks_exact(self.stride).zip(tags);
        let local: f64 = local.map(|(scores, &tag)| scores[usize::from(tag)].wide()).sum();
        let pair = |pair: &[u16]| {
            self.transitions[usize::from(pair[0]) * self.n_tags + usize::from(pair[1])]
        };
        local + tags.windows(2).map(pair).sum::<f64>()
    }

    /// Writes exp(s − max s) of each token to `local` and returns the sum of the maxima.
    fn exponentials(&self, scores: &[T], local: &mut Vec<T>) -> f64 {
        local.resize(scores.len(), T::zero());
        let mut sum = 0.0;
        latens_math::vectorized(
            #[inline(always)]
            || {
                let rows =
                    scores.chunks_exact(self.stride).zip(local.chunks_exact_mut(self.stride));
                for (scores, local) in rows {
                    let (scores, rest) = scores.split_at(self.n_tags);
                    let largest =
                        scores.iter().fold(T::neg_infinity(), |a, &b| if b > a { b } else { a });
                    sum += largest.wide();
                    let (local, padding) = local.split_at_mut(self.n_tags);
                    local
                        .iter_mut()
                        .zip(scores)
                        .for_each(|(local, &s)| *local = (s - largest).exp_of());
                    padding[..rest.len()].fill(T::zero());
                }
            },
        );
        sum
    }

    /// [`ChainHead::run`] in log space, for scores so far apart that products of probabilities underflow.
    fn run_in_log_space(&self, tags: &[u16], scores: &mut [T], shard: &mut Shard<T>) {
        let rows = scores.chunks_exact(self.stride);
        let rows = rows.map(|row| row[..self.n_tags].iter().map(|score| score.wide()).collect());
        let chain = LogSentence { scores: rows.collect(), transitions: &self.transitions };
        scores.fill(T::zero());
        let log_sum = log_smooth(
            &chain,
            |step, nodes| {
                let scores = &mut scores[step * self.stride..][..self.n_tags];
                scores.iter_mut().zip(nodes).for_each(|(score, &node)| *score = T::of(node));
                scores[usize::from(tags[step])] -= T::one();
            },
            |_, edges| shard.gradient.iter_mut().zip(edges).for_each(|(sum, &edge)| *sum += edge),
        );
        shard.loss += log_sum;
    }

    /// Adds the expected transitions of all sentences of a shard to its gradient.
    pub(crate) fn close(&self, shard: &mut Shard<T>) {
        let (n, stride) = (shard.chain.left.len() / self.stride, self.stride);
        let left = MatRef::from_row_major_slice(&shard.chain.left, n, stride);
        let right = MatRef::from_row_major_slice(&shard.chain.right, n, stride);
        let mut sums = vec![T::zero(); stride * stride];
        let out = MatMut::from_row_major_slice_mut(&mut sums, stride, stride);
        multiply(out, Accum::Replace, left.transpose(), right, Par::Seq);
        let rows = sums.chunks_exact(stride).zip(self.pairs.chunks_exact(stride));
        for (gradient, (sums, pairs)) in shard.gradient.chunks_exact_mut(self.n_tags).zip(rows) {
            for (g, (sum, pair)) in gradient.iter_mut().zip(sums.iter().zip(pairs)) {
                *g += sum.wide() * pair.wide();
            }
        }
    }

    /// Writes the gradient of the transitions that have a weight.
    pub(crate) fn finish(&self, sums: &[f64], layout: &Layout, gradient: &mut [f64]) {
        let gradient = &mut gradient[layout.transition_weights()];
        for ((g, sum), has_weight) in gradient.iter_mut().zip(sums).zip(&layout.transitions) {
            *g = if *has_weight { *sum } else { 0.0 };
        }
    }
}

struct Sentence<'a, T> {
    local: &'a [T],
    head: &'a ChainHead<T>,
}

impl<T> Chain<T> for Sentence<'_, T> {
    fn n_steps(&self) -> usize {
        self.local.len() / self.head.stride
    }

    fn local(&self, step: usize) -> &[T] {
        &self.local[step * self.head.stride..][..self.head.stride]
    }

    fn pairs(&self, _: usize) -> &[T] {
        &self.head.pairs
    }
}

/// A sentence in log space.
pub(crate) struct LogSentence<'a> {
    pub(crate) scores: Vec<Vec<f64>>,
    pub(crate) transitions: &'a [f64],
}

impl LogChain for LogSentence<'_> {
    fn n_steps(&self) -> usize {
        self.scores.len()
    }

    fn log_local(&self, step: usize) -> Vec<f64> {
        self.scores[step].clone()
    }

    fn log_pairs(&self, _: usize) -> Vec<f64> {
        self.transitions.to_vec()
    }
}
