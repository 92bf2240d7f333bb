//! The scaled forward and backward passes of a dense model, whose sentences are in lanes.
//!
//! Processors are a hundred times slower with subnormal numbers. α and v are 0 or at least 10⁻³⁰, so that their products
//! with small transitions, and with each other, would be subnormal. They are multiplied by powers of two, which rounds
//! nothing.

use crate::recursion::lanes::Part;
use crate::recursion::products::{largest, product, scaled_product, smallest_share};
use crate::recursion::workspace::Workspace;
use crate::tables::probability_tables::Tables;
use latens_math::linalg::{Accum, MatMut, MatRef, Par};
use latens_math::{BlockRef, Real};
use latens_nn::multiply;
use rayon::prelude::*;

/// Factor of transitions: with it, those that are normal numbers have normal products with α and v. Sums of them are at
/// most 1.3 · 10³⁰, since α sums to 1 and v is at most 1.
const TRANSITION_SCALE: f64 = (1u128 << 100) as f64;

/// Factor of α/κ, which is at most 10¹⁴, in products with v. Sums of them stay below 10³⁸ in batches of up to 800,000 tokens.
const PAIR_SCALE: f64 = (1u64 << 60) as f64;

/// The transitions times [`TRANSITION_SCALE`].
#[derive(Clone, Copy)]
struct Transitions<'a, T> {
    values: &'a [T],
    k: usize,
    par: Par,
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

/// The transitions of a dense model times [`TRANSITION_SCALE`], and 0 instead of subnormal numbers.
fn scaled_transitions<T: Real>(tables: &Tables<T>) -> Vec<T> {
    let scale = T::of(TRANSITION_SCALE);
    let scaled = |&a: &T| if a < T::min_positive_value() { T::zero() } else { a * scale };
    match &tables.factors {
        Some(factors) if tables.transition.is_empty() => {
            factors.block(0..tables.k, 0..tables.k).iter().map(scaled).collect()
        }
        _ => tables.transition.par_iter().with_min_len(1 << 14).map(scaled).collect(),
    }
}

/// The buffers of a part.
struct Piece<'a, T> {
    alpha: &'a mut [T],
    weighted: &'a mut [T],
    nodes: &'a mut [T],
}

impl<T: Real> Workspace<T> {
    /// Fills in α and returns ln p of every sentence, NaN if the recursion underflowed.
    pub(crate) fn forward_in_lanes(&mut self, tables: &Tables<T>) -> Vec<f64> {
        let mut alpha = std::mem::take(&mut self.alpha);
        let work: Vec<_> = self.lanes.parts.iter().zip(self.split_lanes(&mut alpha)).collect();
        let a = scaled_transitions(tables);
        let a = Transitions { values: &a, k: tables.k, par: self.par() };
        let log_probs = work
            .into_par_iter()
            .map(|(part, alpha)| self.forward_part_in_lanes((tables, a), part, alpha));
        let log_probs: Vec<_> = log_probs.collect();
        self.alpha = alpha;
        self.by_sentence(&log_probs.concat())
    }

    /// Fills in γ, and returns ln p of every sentence, NaN if the recursion underflowed, with Σ_t α_t/κ_t ⊗ v_{t+1} of the
    /// other sentences. A part goes forward and backward before the next one, while its values are in the cache.
    pub(crate) fn forward_backward_in_lanes(&mut self, tables: &Tables<T>) -> (Vec<f64>, Vec<T>) {
        let (mut alpha, mut weighted) =
            (std::mem::take(&mut self.alpha), std::mem::take(&mut self.weighted));
        let mut nodes = std::mem::take(&mut self.nodes);
        let split = |values| self.split_lanes(values);
        let pieces = split(&mut alpha).into_iter().zip(split(&mut weighted)).zip(split(&mut nodes));
        let work: Vec<_> = self.lanes.parts.iter().zip(pieces).collect();
        let a = scaled_transitions(tables);
        let a = Transitions { values: &a, k: tables.k, par: self.par() };
        let done = work.into_par_iter().map(|(part, ((alpha, weighted), nodes))| {
            let mut log_probs = self.forward_part_in_lanes((tables, a), part, alpha);
            let piece = &mut Piece { alpha, weighted, nodes };
            self.backward_part_in_lanes((tables, a), part, piece, &mut log_probs);
            let pairs = self.pairs_in_lanes(tables.k, part, piece, &log_probs, a.par);
            (log_probs, pairs)
        });
        let done: Vec<_> = done.collect();
        (self.alpha, self.weighted, self.nodes) = (alpha, weighted, nodes);
        let (mut log_probs, mut sums) = (vec![], vec![]);
        for (of_part, pairs) in done {
            log_probs.extend(of_part);
            match sums.is_empty() {
                true => sums = pairs,
                false => sums.iter_mut().zip(pairs).for_each(|(sum, pair)| *sum += pair),
            }
        }
        let scale = T::of(1.0 / PAIR_SCALE);
        sums.iter_mut().for_each(|sum| *sum *= scale);
        (self.by_sentence(&log_probs), sums)
    }

    /// The matrix products of a single part use all threads.
    fn par(&self) -> Par {
        if self.lanes.parts.len() == 1 { Par::rayon(0) } else { Par::Seq }
    }

    /// Splits the values of all rows by parts.
    fn split_lanes<'v>(&self, values: &'v mut [T]) -> Vec<&'v mut [T]> {
        let k = values.len() / self.lanes.tokens.len().max(1);
        let mut rest = values;
        let pieces =
            self.lanes.parts.iter().map(|part| {
                rest.split_off_mut(..part.rows.len() * k).expect("parts cover all rows")
            });
        pieces.collect()
    }

    /// Moves the numbers of sentences from their order in lanes to that of the batch; 0 without tokens.
    fn by_sentence(&self, values: &[f64]) -> Vec<f64> {
        let mut moved = vec![0.0; self.n_sentences()];
        for (&sentence, &value) in self.lanes.order.iter().zip(values) {
            moved[sentence as usize] = value;
        }
        moved
    }

    /// Whether a row has the first token of a sentence, and whether it has the last.
    #[inline(always)]
    fn ends(&self, row: usize) -> (bool, bool) {
        let token = self.lanes.tokens[row] as usize;
        let sentence = self.lanes.order[self.lanes.places[row] as usize] as usize;
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

    /// The index in the part of the sentence of a row.
    #[inline(always)]
    fn sentence_in(&self, part: &Part, row: usize) -> usize {
        self.lanes.places[row] as usize - part.sentences.start
    }

    fn forward_part_in_lanes(
        &self,
        (tables, a): (&Tables<T>, Transitions<'_, T>),
        part: &Part,
        alpha: &mut [T],
    ) -> Vec<f64> {
        let k = tables.k;
        let smallest_share = smallest_share(tables);
        let mut log_probs = vec![0.0f64; part.sentences.len()];
        let mut incoming = vec![T::zero(); part.steps[0] * k];
        let (mut begin, mut before) = (0, 0);
        for (step, &n) in part.steps.iter().enumerate() {
            if step > 0 {
                let left = &alpha[before * k..(before + n) * k];
                let out = &mut incoming[..n * k];
                a.forward(left, out);
            }
            latens_math::vectorized(
                #[inline(always)]
                || {
                    for i in 0..n {
                        let (row, alpha) =
                            (part.rows.start + begin + i, &mut alpha[(begin + i) * k..][..k]);
                        let log_prob = &mut log_probs[self.sentence_in(part, row)];
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
    fn backward_part_in_lanes(
        &self,
        (tables, a): (&Tables<T>, Transitions<'_, T>),
        part: &Part,
        Piece { alpha, weighted, nodes }: &mut Piece<'_, T>,
        log_probs: &mut [f64],
    ) {
        let k = tables.k;
        let smallest_share = smallest_share(tables);
        let ones = vec![T::one(); k];
        let mut incoming = vec![T::zero(); part.steps[0] * k];
        let (mut end, mut n_after) = (part.rows.len(), 0);
        for &n in part.steps.iter().rev() {
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
                        let (row, values) =
                            (part.rows.start + begin + i, (begin + i) * k..(begin + i + 1) * k);
                        let [alpha, weighted, nodes] =
                            [&mut *alpha, weighted, nodes].map(|all| &mut all[values.clone()]);
                        let local = self.local_in_lanes(tables, row);
                        if self.ends(row).1 {
                            nodes.copy_from_slice(alpha);
                            scaled_product(local, &ones, weighted);
                            continue;
                        }
                        let log_prob = &mut log_probs[self.sentence_in(part, row)];
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

    /// Σ_t α_t/κ_t ⊗ v_{t+1} of a part. Rows that do not count become zero: α of the last token of a sentence, which has no
    /// successor, the sentences that underflowed, and, as nothing has checked it, v of a first token.
    fn pairs_in_lanes(
        &self,
        k: usize,
        part: &Part,
        Piece { alpha, weighted, .. }: &mut Piece<'_, T>,
        log_probs: &[f64],
        par: Par,
    ) -> Vec<T> {
        for (i, row) in part.rows.clone().enumerate() {
            let (is_first, is_last) = self.ends(row);
            let has_underflowed = log_probs[self.sentence_in(part, row)].is_nan();
            if is_last || has_underflowed {
                alpha[i * k..(i + 1) * k].fill(T::zero());
            }
            if is_first || has_underflowed {
                weighted[i * k..(i + 1) * k].fill(T::zero());
            }
        }
        // Moves v to the row of the token before: by n rows, in steps with n rows. Rows without a successor keep some v; their α
        // is 0. With many states, one product of all rows is faster than one per number of rows.
        let (mut begin, mut steps) = (0, &part.steps[..]);
        while let Some(&n) = steps.first() {
            let n_steps = steps.iter().take_while(|&&others| others == n).count();
            steps = &steps[n_steps..];
            let n_rows = (n_steps - 1) * n + steps.first().copied().unwrap_or(0);
            weighted.copy_within((begin + n) * k..(begin + n + n_rows) * k, begin * k);
            begin += n_steps * n;
        }
        let n = part.rows.len();
        let mut sums = vec![T::zero(); k * k];
        let alpha = MatRef::from_row_major_slice(alpha, n, k);
        let weighted = MatRef::from_row_major_slice(weighted, n, k);
        let out = MatMut::from_row_major_slice_mut(&mut sums, k, k);
        multiply(out, Accum::Replace, alpha.transpose(), weighted, par);
        sums
    }
}
