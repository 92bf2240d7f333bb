//! The scaled forward and backward passes of a dense model, whose sentences are in lanes.
//!
//! Processors are a hundred times slower with subnormal numbers. α and v are 0 or at least 10⁻³⁰, so that their products
//! with small transitions, and with each other, would be subnormal. They are multiplied by powers of two, which rounds
//! nothing.

use crate::recursion::dense_lanes::{DenseLanes, add_node};
use crate::recursion::products::{largest, product_max, product_sum, scale, smallest_share};
use crate::tables::expected_counts::{Block, ExpectedCounts};
use crate::tables::probability_tables::Tables;
use latens_math::linalg::{Accum, MatMut, MatRef, Par};
use latens_math::{BlockRef, Real};
use latens_nn::multiply;
use rayon::prelude::*;

/// Factor of transitions: with it, those that are normal numbers have normal products with α and v. Sums of them are at
/// most 1.3 · 10³⁰, since α sums to 1 and v is at most 1.
const TRANSITION_SCALE: f64 = (1u128 << 100) as f64;

/// Factor of α/κ, which is at most 10¹⁴, in products with v. Sums of them stay below 10³⁸ in parts of up to 800,000 tokens.
const PAIR_SCALE: f64 = (1u64 << 60) as f64;

/// The logarithm of the probability of some tokens is taken before it becomes smaller.
const SMALLEST_PROB: f64 = 1e-300;

/// A group has at most this many rows and, if it has several, at most this many values, so that they stay in the nearest
/// cache. All sums of a group are computed before the first is used, so that the processor need not wait for each of them.
const GROUP_ROWS: usize = 8;
const GROUP_VALUES: usize = 512;

/// Number of rows of a group with k states.
fn group_rows(k: usize) -> usize {
    (GROUP_VALUES / k).clamp(1, GROUP_ROWS)
}

/// The transitions times [`TRANSITION_SCALE`], and the threads of their products.
#[derive(Clone, Copy)]
pub(crate) struct Transitions<'a, T> {
    pub(crate) scaled: &'a ScaledTransitions<T>,
    pub(crate) k: usize,
    pub(crate) par: Par,
}

/// The transitions of a dense model times [`TRANSITION_SCALE`], and 0 instead of subnormal numbers; empty for other models.
pub(crate) struct ScaledTransitions<T> {
    values: Vec<T>,
    /// Aᵀ, row-major, so that the products of backward passes need not pack A at every step. May be empty.
    transposed: Vec<T>,
}

impl<T: Real> ScaledTransitions<T> {
    /// Largest number of states with a transposed copy. With more, packing takes a small part of the time of a product.
    const MAX_TRANSPOSED: usize = 128;

    pub(crate) fn new(tables: &Tables<T>) -> Self {
        ScaledTransitions { values: scaled_transitions(tables), transposed: vec![] }
    }

    /// The same with a transposed copy, for backward passes.
    pub(crate) fn with_transposed(tables: &Tables<T>) -> Self {
        let (k, mut scaled) = (tables.k, Self::new(tables));
        if k <= Self::MAX_TRANSPOSED && !scaled.values.is_empty() {
            let columns = (0..k).map(|to| scaled.values[to..].iter().step_by(k));
            scaled.transposed = Vec::with_capacity(k * k);
            columns.for_each(|column| scaled.transposed.extend(column));
        }
        scaled
    }
}

impl<T: Real> Transitions<'_, T> {
    /// With fewer rows, a general matrix product spends its time on packing.
    const MIN_ROWS: usize = 4;

    /// out = left · a.
    fn forward(self, left: &[T], out: &mut [T]) {
        let Transitions { scaled: ScaledTransitions { values, .. }, k, par } = self;
        let n = left.len() / k;
        if n < Self::MIN_ROWS {
            return BlockRef::new(values, k, 0..k, 0..k).times_rows(left, out);
        }
        let left = MatRef::from_row_major_slice(left, n, k);
        let a = MatRef::from_row_major_slice(values, k, k);
        multiply(MatMut::from_row_major_slice_mut(out, n, k), Accum::Replace, left, a, par);
    }

    /// out = left · aᵀ.
    fn backward(self, left: &[T], out: &mut [T]) {
        let Transitions { scaled: ScaledTransitions { values, transposed }, k, par } = self;
        let n = left.len() / k;
        if n < Self::MIN_ROWS {
            return BlockRef::new(values, k, 0..k, 0..k).transposed_times_rows(left, out);
        }
        let left = MatRef::from_row_major_slice(left, n, k);
        let a = match transposed.is_empty() {
            true => MatRef::from_row_major_slice(values, k, k).transpose(),
            false => MatRef::from_row_major_slice(transposed, k, k),
        };
        multiply(MatMut::from_row_major_slice_mut(out, n, k), Accum::Replace, left, a, par);
    }
}

fn scaled_transitions<T: Real>(tables: &Tables<T>) -> Vec<T> {
    if !tables.is_dense() {
        return vec![];
    }
    let scale = T::of(TRANSITION_SCALE);
    let scaled = |&a: &T| if a < T::min_positive_value() { T::zero() } else { a * scale };
    match &tables.factors {
        Some(factors) if tables.transition.is_empty() => {
            factors.block(0..tables.k, 0..tables.k).iter().map(scaled).collect()
        }
        _ => tables.transition.par_iter().with_min_len(1 << 14).map(scaled).collect(),
    }
}

impl<T: Real> DenseLanes<T> {
    /// Fills in α and adds ln p of every sentence to `log_probs`, which becomes NaN if the recursion underflows. Sentences
    /// whose number is NaN are left out.
    pub(crate) fn forward(
        &mut self,
        tables: &Tables<T>,
        a: Transitions<'_, T>,
        log_probs: &mut [f64],
    ) {
        let take = std::mem::take;
        let [mut alpha, mut incoming] = [take(&mut self.alpha), take(&mut self.incoming)];
        let k = tables.k;
        let smallest_share = smallest_share(tables);
        let mut probs = vec![1.0f64; log_probs.len()];
        let group_rows = group_rows(k);
        let (mut begin, mut before) = (0, 0);
        for (step, &n) in self.steps().iter().enumerate() {
            if step > 0 {
                a.forward(&alpha[before * k..(before + n) * k], &mut incoming[..n * k]);
            }
            latens_math::vectorized(
                #[inline(always)]
                || {
                    let mut sums = [None; GROUP_ROWS];
                    let groups = alpha[begin * k..(begin + n) * k].chunks_mut(group_rows * k);
                    for (group, alphas) in groups.enumerate() {
                        let rows = group * group_rows..n;
                        for ((i, alpha), sum) in
                            rows.clone().zip(alphas.chunks_exact_mut(k)).zip(&mut sums)
                        {
                            let incoming = match self.rows[begin + i].is_first {
                                true => &tables.start[..],
                                false => &incoming[i * k..][..k],
                            };
                            *sum = product_sum(incoming, self.local(begin + i, k), alpha);
                        }
                        for ((i, alpha), &sum) in rows.zip(alphas.chunks_exact_mut(k)).zip(&sums) {
                            let row = self.rows[begin + i];
                            let sentence = row.sentence as usize;
                            let log_prob = &mut log_probs[sentence];
                            let Some(sum) = sum.filter(|_| !log_prob.is_nan()) else {
                                *log_prob = f64::NAN;
                                alpha.fill(T::zero());
                                continue;
                            };
                            let factor = if row.is_first { 1.0 } else { 1.0 / TRANSITION_SCALE };
                            let prob = sum * factor;
                            // Relative to the word's most likely state, so that the rounding of the incoming
                            // probabilities decides, and not the rarity of the word.
                            if prob < smallest_share
                                && prob < smallest_share * largest(self.local(begin + i, k)).wide()
                            {
                                *log_prob = f64::NAN;
                                alpha.fill(T::zero());
                                continue;
                            }
                            scale(alpha, T::of(1.0 / sum));
                            // A logarithm takes longer than a product.
                            let product = probs[sentence] * prob;
                            if product > SMALLEST_PROB {
                                probs[sentence] = product;
                            } else {
                                *log_prob += probs[sentence].ln() + prob.ln();
                                probs[sentence] = 1.0;
                            }
                        }
                    }
                },
            );
            (before, begin) = (begin, begin + n);
        }
        log_probs.iter_mut().zip(probs).for_each(|(log_prob, prob)| *log_prob += prob.ln());
        (self.alpha, self.incoming) = (alpha, incoming);
    }

    /// Overwrites `out` with the expected counts of the sentences whose recursion does not underflow, and `log_probs`, which are
    /// zeros, with ln p, NaN for the others.
    pub(crate) fn expected_counts(
        &mut self,
        tables: &Tables<T>,
        a: Transitions<'_, T>,
        log_probs: &mut [f64],
        out: &mut ExpectedCounts<T>,
    ) {
        loop {
            self.forward(tables, a, log_probs);
            self.clear_nodes(tables, out);
            if self.backward(tables, a, log_probs, out) {
                break;
            }
            // `out` has the last tokens of a sentence that underflows on the way back: once more without it.
            let others = log_probs.iter_mut().filter(|log_prob| !log_prob.is_nan());
            others.for_each(|log_prob| *log_prob = 0.0);
        }
        let (n, k) = (self.rows.len(), tables.k);
        let mut pairs = vec![T::zero(); k * k];
        let [alpha, v] =
            [&self.alpha, &self.v].map(|rows| MatRef::from_row_major_slice(rows, n, k));
        let sums = MatMut::from_row_major_slice_mut(&mut pairs, k, k);
        multiply(sums, Accum::Replace, alpha.transpose(), v, a.par);
        let scale = T::of(1.0 / PAIR_SCALE);
        pairs.iter_mut().for_each(|pair| *pair *= scale);
        let rows = pairs.chunks_exact(k).zip(a.scaled.values.chunks_exact(k));
        for (departures, (pairs, a)) in out.departures.iter_mut().zip(rows) {
            let products = pairs.iter().zip(a).map(|(pair, a)| pair.wide() * a.wide());
            *departures = T::of(products.sum::<f64>() / TRANSITION_SCALE);
        }
        out.ratios = vec![Block { from: 0, to: 0, values: pairs }];
    }

    /// Overwrites α by α/κ times [`PAIR_SCALE`], or 0 where a sentence ends, fills in v, which is 0 where the next sentence
    /// begins, and adds γ to `out`. Sentences whose ln p is NaN are left out. Returns false if another one underflows, whose
    /// ln p becomes NaN.
    fn backward(
        &mut self,
        tables: &Tables<T>,
        a: Transitions<'_, T>,
        log_probs: &mut [f64],
        out: &mut ExpectedCounts<T>,
    ) -> bool {
        let take = std::mem::take;
        let [mut alpha, mut v, mut incoming] =
            [&mut self.alpha, &mut self.v, &mut self.incoming].map(take);
        let k = tables.k;
        let smallest_share = smallest_share(tables);
        let ones = vec![T::one(); k];
        let group_rows = group_rows(k);
        let mut nodes = vec![T::zero(); group_rows * k];
        let mut has_underflowed = false;
        let (mut end, mut n_after) = (self.rows.len(), 0);
        for (step, &n) in self.steps().iter().enumerate().rev() {
            let begin = end - n;
            a.backward(&v[begin * k..(begin + n_after) * k], &mut incoming[..n_after * k]);
            // The rows of the tokens before.
            let before = if step > 0 { begin - self.steps()[step - 1]..begin } else { 0..0 };
            latens_math::vectorized(
                #[inline(always)]
                || {
                    let mut sums = [None; GROUP_ROWS];
                    let mut maxima = [T::zero(); GROUP_ROWS];
                    let groups = alpha[begin * k..end * k].chunks_mut(group_rows * k);
                    let mut vs = v[before.start * k..before.end * k].chunks_mut(group_rows * k);
                    for (group, alphas) in groups.enumerate() {
                        let rows = group * group_rows..n;
                        // The last step has no tokens before.
                        let vs = vs.next().unwrap_or_default();
                        let beta = |i: usize| match self.rows[begin + i].is_last {
                            true => &ones[..],
                            false => &incoming[i * k..][..k],
                        };
                        let nodes_of = nodes.chunks_exact_mut(k);
                        let values = rows.clone().zip(alphas.chunks_exact(k)).zip(nodes_of);
                        for (((i, alpha), node), sum) in values.zip(&mut sums) {
                            *sum = product_sum(alpha, beta(i), node);
                        }
                        let values = rows.clone().zip(vs.chunks_exact_mut(k));
                        for ((i, v), max) in values.zip(&mut maxima) {
                            *max = product_max(beta(i), self.local(begin + i, k), v);
                        }
                        let mut vs = vs.chunks_exact_mut(k).zip(&maxima);
                        let values =
                            rows.zip(alphas.chunks_exact_mut(k)).zip(nodes.chunks_exact(k));
                        for (((i, alpha), node), &sum) in values.zip(&sums) {
                            let row = self.rows[begin + i];
                            let (v, &max) = vs.next().unwrap_or((&mut [], &T::one()));
                            let log_prob = &mut log_probs[row.sentence as usize];
                            if log_prob.is_nan() {
                                alpha.fill(T::zero());
                                v.fill(T::zero());
                                continue;
                            }
                            if row.is_last {
                                add_node(row, alpha, T::one(), out);
                                alpha.fill(T::zero());
                            } else {
                                let sum = sum.unwrap_or(0.0);
                                if sum / TRANSITION_SCALE < smallest_share {
                                    *log_prob = f64::NAN;
                                    has_underflowed = true;
                                    continue;
                                }
                                add_node(row, node, T::of(1.0 / sum), out);
                                let factor = T::of(PAIR_SCALE / (sum / TRANSITION_SCALE));
                                for alpha in alpha.iter_mut() {
                                    *alpha *= factor;
                                }
                            }
                            if row.is_first {
                                v.fill(T::zero());
                            } else {
                                scale(v, T::one() / max);
                            }
                        }
                    }
                },
            );
            (end, n_after) = (begin, n);
        }
        (self.alpha, self.v, self.incoming) = (alpha, v, incoming);
        !has_underflowed
    }
}
