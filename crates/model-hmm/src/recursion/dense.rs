//! The scaled forward and backward passes of a dense model, whose sentences are in lanes.
//!
//! Processors are a hundred times slower with subnormal numbers. α and v are 0 or at least 10⁻³⁰, so that their products
//! with small transitions, and with each other, would be subnormal. They are multiplied by powers of two, which rounds
//! nothing.

use crate::recursion::products::{largest, product, scaled_product, smallest_share};
use crate::recursion::workspace::Workspace;
use crate::tables::probability_tables::Tables;
use latens_math::linalg::{Accum, MatMut, MatRef, Par};
use latens_math::{BlockRef, Real, prefetch};
use latens_nn::multiply;
use rayon::prelude::*;

/// Factor of transitions: with it, those that are normal numbers have normal products with α and v. Sums of them are at
/// most 1.3 · 10³⁰, since α sums to 1 and v is at most 1.
const TRANSITION_SCALE: f64 = (1u128 << 100) as f64;

/// Factor of α/κ, which is at most 10¹⁴, in products with v. Sums of them stay below 10³⁸ in parts of up to 800,000 tokens.
const PAIR_SCALE: f64 = (1u64 << 60) as f64;

/// Number of rows between the prefetch of emission probabilities, which lie anywhere in memory, and their use.
const AHEAD: usize = 8;

/// The transitions times [`TRANSITION_SCALE`], and the threads of their products.
#[derive(Clone, Copy)]
pub(crate) struct Transitions<'a, T> {
    pub(crate) values: &'a [T],
    pub(crate) k: usize,
    pub(crate) par: Par,
}

impl<T: Real> Transitions<'_, T> {
    /// With fewer rows, a general matrix product spends its time on packing.
    const MIN_ROWS: usize = 4;

    /// out = left · a.
    fn forward(self, left: &[T], out: &mut [T]) {
        let Transitions { values, k, par } = self;
        let n = left.len() / k;
        if n < Self::MIN_ROWS {
            return BlockRef::new(values, k, (0, k), (0, k)).times_rows(left, out);
        }
        let left = MatRef::from_row_major_slice(left, n, k);
        let a = MatRef::from_row_major_slice(values, k, k);
        multiply(MatMut::from_row_major_slice_mut(out, n, k), Accum::Replace, left, a, par);
    }

    /// out = left · aᵀ.
    fn backward(self, left: &[T], out: &mut [T]) {
        let Transitions { values, k, par } = self;
        let n = left.len() / k;
        if n < Self::MIN_ROWS {
            return BlockRef::new(values, k, (0, k), (0, k)).transposed_times_rows(left, out);
        }
        let left = MatRef::from_row_major_slice(left, n, k);
        let a = MatRef::from_row_major_slice(values, k, k).transpose();
        multiply(MatMut::from_row_major_slice_mut(out, n, k), Accum::Replace, left, a, par);
    }
}

/// The values of all rows.
struct Values<T> {
    alpha: Vec<T>,
    v: Vec<T>,
    nodes: Vec<T>,
}

/// The transitions of a dense model times [`TRANSITION_SCALE`], and 0 instead of subnormal numbers; empty for other models.
pub(crate) fn scaled_transitions<T: Real>(tables: &Tables<T>) -> Vec<T> {
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

impl<T: Real> Workspace<T> {
    /// Fills in α and returns ln p of every sentence, NaN if the recursion underflowed.
    pub(crate) fn forward_in_lanes(
        &mut self,
        tables: &Tables<T>,
        a: Transitions<'_, T>,
    ) -> Vec<f64> {
        let mut alpha = std::mem::take(&mut self.alpha);
        let log_probs = self.forward_steps((tables, a), &mut alpha);
        self.alpha = alpha;
        log_probs
    }

    /// Fills in γ, and returns ln p of every sentence, NaN if the recursion underflowed, with Σ_t α_t/κ_t ⊗ v_{t+1} of the
    /// other sentences.
    pub(crate) fn forward_backward_in_lanes(
        &mut self,
        tables: &Tables<T>,
        a: Transitions<'_, T>,
    ) -> (Vec<f64>, Vec<T>) {
        let take = std::mem::take;
        let mut values = Values {
            alpha: take(&mut self.alpha),
            v: take(&mut self.weighted),
            nodes: take(&mut self.nodes),
        };
        let mut log_probs = self.forward_steps((tables, a), &mut values.alpha);
        self.backward_steps((tables, a), &mut values, &mut log_probs);
        let mut pairs = self.pairs_in_lanes(tables.k, &mut values, &log_probs, a.par);
        (self.alpha, self.weighted, self.nodes) = (values.alpha, values.v, values.nodes);
        let scale = T::of(1.0 / PAIR_SCALE);
        pairs.iter_mut().for_each(|pair| *pair *= scale);
        (log_probs, pairs)
    }

    /// Whether a row has the first token of a sentence, and whether it has the last.
    #[inline(always)]
    fn ends(&self, row: usize) -> (bool, bool) {
        let (token, sentence) =
            (self.lanes.tokens[row] as usize, self.lanes.sentences[row] as usize);
        let (begin, end) = (self.sentence_starts[sentence], self.sentence_starts[sentence + 1]);
        (token == begin, token + 1 == end)
    }

    /// b ∘ g of a row.
    #[inline(always)]
    fn local_in_lanes<'v>(&'v self, tables: &'v Tables<T>, row: usize) -> &'v [T] {
        let token = self.lanes.tokens[row] as usize;
        match self.slots[token] {
            u32::MAX => &self.zeros,
            slot if self.tags.is_empty() => tables.emission_of(slot as usize),
            _ => self.local_of(token),
        }
    }

    fn forward_steps(
        &self,
        (tables, a): (&Tables<T>, Transitions<'_, T>),
        alpha: &mut [T],
    ) -> Vec<f64> {
        let k = tables.k;
        let smallest_share = smallest_share(tables);
        let mut log_probs = vec![0.0f64; self.n_sentences()];
        let steps = &self.lanes.steps;
        let mut incoming = vec![T::zero(); steps.first().map_or(0, |n| n * k)];
        let (mut begin, mut before) = (0, 0);
        for (step, &n) in steps.iter().enumerate() {
            if step > 0 {
                let left = &alpha[before * k..(before + n) * k];
                let out = &mut incoming[..n * k];
                a.forward(left, out);
            }
            latens_math::vectorized(
                #[inline(always)]
                || {
                    for i in 0..n {
                        let (row, alpha) = (begin + i, &mut alpha[(begin + i) * k..][..k]);
                        if row + AHEAD < self.lanes.tokens.len() {
                            prefetch(self.local_in_lanes(tables, row + AHEAD));
                        }
                        let log_prob = &mut log_probs[self.lanes.sentences[row] as usize];
                        if log_prob.is_nan() {
                            alpha.fill(T::zero());
                            continue;
                        }
                        let (incoming, factor) = match self.ends(row) {
                            (true, _) => (&tables.start[..], 1.0),
                            (false, _) => (&incoming[i * k..][..k], 1.0 / TRANSITION_SCALE),
                        };
                        let local = self.local_in_lanes(tables, row);
                        let scale = product(incoming, local, alpha).map(
                            #[inline(always)]
                            |scale| scale * factor,
                        );
                        // Relative to the word's most likely state, so that the rounding of the incoming
                        // probabilities decides, and not the rarity of the word.
                        let scale = scale.filter(
                            #[inline(always)]
                            |&scale| {
                                scale >= smallest_share
                                    || scale >= smallest_share * largest(local).wide()
                            },
                        );
                        *log_prob += scale.map_or(f64::NAN, f64::ln);
                    }
                },
            );
            (before, begin) = (begin, begin + n);
        }
        log_probs
    }

    /// Sets ln p of a sentence to NaN if the recursion underflowed.
    fn backward_steps(
        &self,
        (tables, a): (&Tables<T>, Transitions<'_, T>),
        Values { alpha, v: weighted, nodes }: &mut Values<T>,
        log_probs: &mut [f64],
    ) {
        let k = tables.k;
        let smallest_share = smallest_share(tables);
        let ones = vec![T::one(); k];
        let steps = &self.lanes.steps;
        let mut incoming = vec![T::zero(); steps.first().map_or(0, |n| n * k)];
        let (mut end, mut n_after) = (self.lanes.tokens.len(), 0);
        for &n in steps.iter().rev() {
            let begin = end - n;
            if n_after > 0 {
                let left = &weighted[end * k..(end + n_after) * k];
                let out = &mut incoming[..n_after * k];
                a.backward(left, out);
            }
            latens_math::vectorized(
                #[inline(always)]
                || {
                    for i in 0..n {
                        let (row, values) = (begin + i, (begin + i) * k..(begin + i + 1) * k);
                        let [alpha, weighted, nodes] =
                            [&mut *alpha, weighted, nodes].map(|all| &mut all[values.clone()]);
                        let local = self.local_in_lanes(tables, row);
                        if self.ends(row).1 {
                            nodes.copy_from_slice(alpha);
                            scaled_product(local, &ones, weighted);
                            continue;
                        }
                        let log_prob = &mut log_probs[self.lanes.sentences[row] as usize];
                        if log_prob.is_nan() {
                            weighted.fill(T::zero());
                            continue;
                        }
                        let beta = &incoming[i * k..][..k];
                        let total = product(alpha, beta, nodes).unwrap_or(0.0) / TRANSITION_SCALE;
                        if total < smallest_share {
                            *log_prob = f64::NAN;
                            weighted.fill(T::zero());
                            continue;
                        }
                        let scale = T::of(PAIR_SCALE / total);
                        for alpha in alpha.iter_mut() {
                            *alpha *= scale;
                        }
                        scaled_product(beta, local, weighted);
                    }
                },
            );
            (end, n_after) = (begin, n);
        }
    }

    /// Σ_t α_t/κ_t ⊗ v_{t+1}. Rows that do not count become zero: α of the last token of a sentence, which has no
    /// successor, the sentences that underflowed, and, as nothing has checked it, v of a first token.
    fn pairs_in_lanes(
        &self,
        k: usize,
        Values { alpha, v: weighted, .. }: &mut Values<T>,
        log_probs: &[f64],
        par: Par,
    ) -> Vec<T> {
        for (row, &sentence) in self.lanes.sentences.iter().enumerate() {
            let (is_first, is_last) = self.ends(row);
            let has_underflowed = log_probs[sentence as usize].is_nan();
            if is_last || has_underflowed {
                alpha[row * k..(row + 1) * k].fill(T::zero());
            }
            if is_first || has_underflowed {
                weighted[row * k..(row + 1) * k].fill(T::zero());
            }
        }
        // Moves v to the row of the token before: by n rows, in steps with n rows. Rows without a successor keep some v; their α
        // is 0. With many states, one product of all rows is faster than one per number of rows.
        let (mut begin, mut steps) = (0, &self.lanes.steps[..]);
        while let Some(&n) = steps.first() {
            let n_steps = steps.iter().take_while(|&&others| others == n).count();
            steps = &steps[n_steps..];
            let n_rows = (n_steps - 1) * n + steps.first().copied().unwrap_or(0);
            weighted.copy_within((begin + n) * k..(begin + n + n_rows) * k, begin * k);
            begin += n_steps * n;
        }
        let n = self.lanes.tokens.len();
        let mut sums = vec![T::zero(); k * k];
        let alpha = MatRef::from_row_major_slice(alpha, n, k);
        let weighted = MatRef::from_row_major_slice(weighted, n, k);
        let out = MatMut::from_row_major_slice_mut(&mut sums, k, k);
        multiply(out, Accum::Replace, alpha.transpose(), weighted, par);
        sums
    }
}
