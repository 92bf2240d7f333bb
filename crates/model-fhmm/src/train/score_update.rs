//! M-step of the emission scores: the objective, its gradient, and closed-form updates.
//!
//! The objective is concave in θ:
//!
//! ```text
//! F(θ) = Σ N[Y,m,k] θ[Y,m,k] − normalizer      dF/dθ = N − W
//! W[Y,m,k] = Σ_{s: s^m = k} G(s) exp(b_Y + Σ_l θ[Y,l,s^l])
//! ```
//!
//! with G(s) = n(s)/Z(s) where the expectation of ln Z is exact, and Σ_t Π γ̃ / Z̄_t where it is bounded token by token.
//! The update θ += ln(N/W) of one layer at a time maximizes a minorant of F (ln Z ≤ ln Z₀ + Z/Z₀ − 1), so that F never
//! decreases. For a single layer it is the exact maximum.

use crate::distribution::Distribution;
use crate::emission::partition::{
    BLOCK_WORDS, PartitionTable, Products, add_parts, partition, shard_words,
};
use crate::shape::Shape;
use crate::tensor::keep_layer;
use crate::train::normalizer::Normalizer;
use crate::train::statistics::Statistics;
use latens_math::Real;
use latens_math::linalg::{Accum, MatMut, MatRef, matmul};
use rayon::prelude::*;

/// Expected counts of words and states of a whole text, with pseudo-tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WordCounts<'a> {
    pub(crate) statistics: &'a Statistics,
    pub(crate) n_tokens: f64,
    pub(crate) pseudo_tokens: f64,
    /// Distribution of the words of pseudo-tokens.
    pub(crate) unigrams: &'a [f64],
}

impl WordCounts<'_> {
    /// N of a word in a state of a layer.
    #[inline(always)]
    pub(crate) fn of(&self, word: usize, layer: usize, state: usize) -> f64 {
        let shape = self.statistics.shape;
        let at = word * shape.row() + layer * shape.n_states + state;
        let pseudo = self.pseudo_tokens * self.unigrams[word] / shape.n_states as f64;
        self.statistics.words[at] * self.n_tokens + pseudo
    }

    /// Count of a word.
    pub(crate) fn total(&self, word: usize) -> f64 {
        (0..self.statistics.shape.n_states).map(|state| self.of(word, 0, state)).sum()
    }
}

/// Updates all layers in turn: θ += power · ln(N/W). The power is 1, or less where the normalizer is estimated from one
/// batch.
///
/// Z of `table` is left as it was before the last layer. Returns whether every Z was in the range of the precision.
pub(crate) fn update_layers<T: Real>(
    distribution: &mut Distribution<T>,
    table: &mut PartitionTable<T>,
    counts: &WordCounts<'_>,
    normalizer: &Normalizer<'_, T>,
    power: f64,
) -> bool {
    let shape = distribution.shape;
    let mut is_in_range = true;
    for layer in 0..shape.n_layers {
        if table.values.is_empty() {
            let expected = normalizer.expected_over_words(shape, table, layer..layer + 1).1;
            update_from(distribution, table, counts, &expected, LayerStep { layer, power });
        } else {
            is_in_range &= table.is_in_range();
            let ratios = normalizer.ratios(shape, &table.values);
            let step = LayerStep { layer, power };
            let z = update_by_table(distribution, table, counts, &ratios, step);
            table.values =
                if layer + 1 < shape.n_layers { z } else { std::mem::take(&mut table.values) };
        }
    }
    is_in_range
}

/// One layer of one pass of updates.
#[derive(Clone, Copy, Debug)]
struct LayerStep {
    layer: usize,
    power: f64,
}

/// Updates θ and e^θ of one word in one layer.
#[inline(always)]
pub(crate) fn update_word<T: Real>(
    theta: &mut [T],
    exps: &mut [T],
    expected: &[T],
    count: impl Fn(usize) -> T,
    power: f64,
) {
    for (state, ((theta, exp), &expected)) in theta.iter_mut().zip(exps).zip(expected).enumerate() {
        let step = (count(state) / expected).ln() * T::of(power);
        // 0/0: a word that is neither observed nor expected keeps its score.
        if !step.is_nan() {
            *theta = Distribution::clamp(*theta + step);
            *exp = theta.exp_of();
        }
    }
}

/// Updates a layer, and returns the new Z unless it is the last layer. Threads process fixed shards of words.
fn update_by_table<T: Real>(
    distribution: &mut Distribution<T>,
    table: &mut PartitionTable<T>,
    counts: &WordCounts<'_>,
    ratios: &[T],
    step: LayerStep,
) -> Vec<T> {
    let (shape, layer) = (distribution.shape, step.layer);
    let is_last = layer + 1 == shape.n_layers;
    let (row, shard) = (shape.row(), shard_words(shape.n_words));
    let shards = distribution.theta.par_chunks_mut(shard * row);
    let shards =
        shards.zip(table.exps.par_chunks_mut(shard * row)).zip(table.base.par_chunks(shard));
    let parts: Vec<Vec<T>> = shards
        .enumerate()
        .map(|(i, ((theta, exps), base))| {
            let mut pass = Pass::new(shape, ratios);
            let mut sums = vec![T::zero(); if is_last { 0 } else { shape.n_joint() }];
            let blocks =
                theta.chunks_mut(BLOCK_WORDS * row).zip(exps.chunks_mut(BLOCK_WORDS * row));
            for (block, ((theta, exps), base)) in blocks.zip(base.chunks(BLOCK_WORDS)).enumerate() {
                pass.products.fill(exps, base);
                pass.multiply(layer);
                let first_word = i * shard + block * BLOCK_WORDS;
                pass.update_words(step, first_word, theta, exps, base, counts);
                if !is_last {
                    pass.products.refill(layer, exps, base);
                    pass.products.add_partition(&mut sums);
                }
            }
            sums
        })
        .collect();
    add_parts(parts)
}

/// Updates a layer, given its W: words × states.
fn update_from<T: Real>(
    distribution: &mut Distribution<T>,
    table: &mut PartitionTable<T>,
    counts: &WordCounts<'_>,
    expected: &[T],
    LayerStep { layer, power }: LayerStep,
) {
    let shape = distribution.shape;
    let words = distribution.theta.chunks_exact_mut(shape.row());
    let words = words.zip(table.exps.chunks_exact_mut(shape.row()));
    for (word, (theta, exps)) in words.enumerate() {
        let expected = &expected[word * shape.n_states..(word + 1) * shape.n_states];
        let range = shape.layer(layer);
        let count = |state| T::of(counts.of(word, layer, state));
        update_word(&mut theta[range.clone()], &mut exps[range], expected, count, power);
    }
}

/// State of one thread in a pass over words.
pub(crate) struct Pass<'a, T> {
    shape: Shape,
    /// G: joint states of the first group × those of the second.
    ratios: &'a [T],
    pub(crate) products: Products<T>,
    /// G summed over the other group: words × joint states of this group.
    rest: Vec<T>,
    scratch: Vec<T>,
    /// W of a word in a layer.
    pub(crate) out: Vec<T>,
}

impl<'a, T: Real> Pass<'a, T> {
    pub(crate) fn new(shape: Shape, ratios: &'a [T]) -> Pass<'a, T> {
        let n = shape.n_columns().max(shape.n_rows());
        Pass {
            shape,
            ratios,
            products: Products::new(shape),
            rest: vec![],
            scratch: vec![T::zero(); 2 * n],
            out: vec![T::zero(); shape.n_states],
        }
    }

    /// Sums G over the group that does not contain `layer`, for the current block of words.
    pub(crate) fn multiply(&mut self, layer: usize) {
        let (n_rows, n_columns) = (self.shape.n_rows(), self.shape.n_columns());
        let ratios = MatRef::from_row_major_slice(self.ratios, n_rows, n_columns);
        let is_first = layer < self.shape.first().end;
        let (left, right, n_group) = match is_first {
            true => (self.products.second(), ratios.transpose(), n_rows),
            false => (self.products.first(), ratios, n_columns),
        };
        self.rest.resize(left.nrows() * n_group, T::zero());
        let rest = MatMut::from_row_major_slice_mut(&mut self.rest, left.nrows(), n_group);
        matmul(rest, Accum::Replace, left, right);
    }

    /// Updates a layer of a block of words that starts at `first_word`.
    fn update_words(
        &mut self,
        step: LayerStep,
        first_word: usize,
        theta: &mut [T],
        exps: &mut [T],
        base: &[T],
        counts: &WordCounts<'_>,
    ) {
        let (row, LayerStep { layer, power }) = (self.shape.row(), step);
        latens_math::vectorized(
            #[inline(always)]
            || {
                let words = theta.chunks_exact_mut(row).zip(exps.chunks_exact_mut(row));
                for (word, (theta, exps)) in words.enumerate() {
                    self.expect(layer, word, exps, base[word]);
                    let range = self.shape.layer(layer);
                    let count = |state| T::of(counts.of(first_word + word, layer, state));
                    let (theta, exps) = (&mut theta[range.clone()], &mut exps[range]);
                    update_word(theta, exps, &self.out, count, power);
                }
            },
        );
    }

    /// Computes W of a word in a layer, after [`Pass::multiply`] for a layer of the same group.
    #[inline(always)]
    pub(crate) fn expect(&mut self, layer: usize, word: usize, exps: &[T], base: T) {
        let (shape, group) = (self.shape, self.shape.group(layer));
        let n = shape.joint(group.len());
        let rest = &self.rest[word * n..(word + 1) * n];
        let weights = &exps[shape.layers(group.clone())];
        let (at, k) = (layer - group.start, shape.n_states);
        keep_layer(rest, weights, k, at, &mut self.scratch[..2 * n], &mut self.out);
        // The products of the first group already contain e^b.
        let base = if layer < shape.first().end { base } else { T::one() };
        let own = exps[shape.layer(layer)].iter();
        self.out.iter_mut().zip(own).for_each(|(out, &exp)| *out *= exp * base);
    }
}

/// Computes W: words × layers × states.
pub(crate) fn expected_words<T: Real>(
    shape: Shape,
    table: &PartitionTable<T>,
    ratios: &[T],
) -> Vec<T> {
    let (row, shard) = (shape.row(), shard_words(shape.n_words));
    let mut expected = vec![T::zero(); shape.n_words * row];
    let shards = expected.par_chunks_mut(shard * row);
    let shards = shards.zip(table.exps.par_chunks(shard * row)).zip(table.base.par_chunks(shard));
    shards.for_each(|((expected, exps), base)| {
        let mut pass = Pass::new(shape, ratios);
        let blocks = expected.chunks_mut(BLOCK_WORDS * row).zip(exps.chunks(BLOCK_WORDS * row));
        for ((expected, exps), base) in blocks.zip(base.chunks(BLOCK_WORDS)) {
            pass.products.fill(exps, base);
            for layer in 0..shape.n_layers {
                if layer == shape.group(layer).start {
                    pass.multiply(layer);
                }
                for (word, exps) in exps.chunks_exact(row).enumerate() {
                    pass.expect(layer, word, exps, base[word]);
                    let range = shape.layer(layer);
                    expected[word * row + range.start..word * row + range.end]
                        .copy_from_slice(&pass.out);
                }
            }
        }
    });
    expected
}

/// Shifts θ such that Σ_Y e^{b_Y + θ[Y,m,k]} = 1 for every state. This changes no probability and keeps Z near one.
/// `exps` is e^θ, `base` is e^b.
pub(crate) fn fix_gauge<T: Real>(distribution: &mut Distribution<T>, exps: &[T], base: &[T]) {
    let row = distribution.shape.row();
    let mut sums = vec![0.0; row];
    for (exps, base) in exps.chunks_exact(row).zip(base) {
        let terms = exps.iter().map(|&exp| (exp * *base).wide());
        sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
    }
    let shifts: Vec<T> = sums.iter().map(|sum| T::of(sum.ln())).collect();
    distribution.theta.par_chunks_exact_mut(row).for_each(|theta| {
        theta.iter_mut().zip(&shifts).for_each(|(theta, &shift)| *theta -= shift);
    });
}

/// F(θ) and its gradient N − W: words × layers × states.
pub(crate) fn objective<T: Real>(
    distribution: &Distribution<T>,
    table: &mut PartitionTable<T>,
    counts: &WordCounts<'_>,
    normalizer: &Normalizer<'_, T>,
) -> (f64, Vec<f64>) {
    let shape = distribution.shape;
    table.exps = crate::emission::partition::exponentials(&distribution.theta);
    let (value, expected) = if table.values.is_empty() {
        normalizer.expected_over_words(shape, table, 0..shape.n_layers)
    } else {
        table.values = partition(shape, &table.exps, &table.base);
        let value = normalizer.value(shape, &table.values);
        let ratios = normalizer.ratios(shape, &table.values);
        (value, expected_words(shape, table, &ratios))
    };
    let mut sum = 0.0;
    let mut gradient = Vec::with_capacity(expected.len());
    for (at, (expected, theta)) in expected.iter().zip(&distribution.theta).enumerate() {
        let (word, rest) = (at / shape.row(), at % shape.row());
        let count = counts.of(word, rest / shape.n_states, rest % shape.n_states);
        sum += count * theta.wide();
        gradient.push(count - expected.wide());
    }
    (sum - value, gradient)
}
