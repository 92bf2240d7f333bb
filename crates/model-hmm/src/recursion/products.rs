//! The products of one step of the recursion.

use crate::tables::probability_tables::Tables;
use latens_math::linalg::{Accum, MatMut, MatRef, Par};
use latens_math::{BlockRef, Real};
use latens_nn::multiply;

/// A token with the groups of two adjacent tokens: (group before, group, token, sentence).
pub(crate) type Member = (u32, u32, usize, usize);

/// Sorts tokens and returns those that share both groups together.
pub(crate) fn by_groups(members: &mut [Member]) -> impl Iterator<Item = (usize, usize, &[Member])> {
    members.sort_unstable();
    let groups = members.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1));
    groups.map(|members| (members[0].0 as usize, members[0].1 as usize, members))
}

/// The transitions between the states of two groups: a k × k block of the table, or gathered entries.
#[derive(Clone, Copy)]
pub(crate) struct Pair<'a, T> {
    pub(crate) tables: &'a Tables<T>,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

impl<'a, T: Real> Pair<'a, T> {
    fn rows(self) -> BlockRef<'a, T> {
        let (k, n) = (self.tables.k, self.tables.n_states());
        BlockRef::new(&self.tables.transition, n, (self.from * k, k), (self.to * k, k))
    }

    /// The transitions and their number of columns, if they are not a block of the stored table.
    fn gathered(self) -> Option<(Vec<T>, usize)> {
        let Pair { tables, from, to } = self;
        if let Some(lists) = &tables.lists {
            return Some((tables.pairs(lists.of(from), lists.of(to)), lists.of(to).len()));
        }
        let states = |cluster: usize| cluster * tables.k..(cluster + 1) * tables.k;
        let factors = tables.factors.as_ref().filter(|_| tables.transition.is_empty())?;
        Some((factors.block(states(from), states(to)), tables.k))
    }

    fn matrix(self) -> MatRef<'a, T> {
        let (k, n) = (self.tables.k, self.tables.n_states());
        let all = MatRef::from_row_major_slice(&self.tables.transition[..], n, n);
        all.submatrix(self.from * k, self.to * k, k, k)
    }
}

/// A block with all of `values`.
fn whole<T: Real>(values: &[T], n_cols: usize) -> BlockRef<'_, T> {
    BlockRef::new(values, n_cols, (0, values.len() / n_cols), (0, n_cols))
}

/// out = left · block. In a dense model many rows share the only block, and a general matrix product is faster.
pub(crate) fn forward_product<T: Real>(pair: Pair<'_, T>, left: &[T], out: &mut [T], par: Par) {
    if let Some((values, n_cols)) = pair.gathered() {
        return whole(&values, n_cols).times_rows(left, out);
    }
    let (k, n) = (pair.tables.k, left.len() / pair.tables.k);
    if !pair.tables.is_dense() || n < 4 {
        return pair.rows().times_rows(left, out);
    }
    let out = MatMut::from_row_major_slice_mut(out, n, k);
    let left = MatRef::from_row_major_slice(left, n, k);
    multiply(out, Accum::Replace, left, pair.matrix(), par);
}

/// out = left · blockᵀ.
pub(crate) fn backward_product<T: Real>(pair: Pair<'_, T>, left: &[T], out: &mut [T], par: Par) {
    if let Some((values, n_cols)) = pair.gathered() {
        return whole(&values, n_cols).transposed_times_rows(left, out);
    }
    let (k, n) = (pair.tables.k, left.len() / pair.tables.k);
    if !pair.tables.is_dense() || n < 4 {
        return pair.rows().transposed_times_rows(left, out);
    }
    let out = MatMut::from_row_major_slice_mut(out, n, k);
    let left = MatRef::from_row_major_slice(left, n, k);
    multiply(out, Accum::Replace, left, pair.matrix().transpose(), par);
}

/// out = a ∘ b, scaled to sum to 1. Returns the sum before scaling, unless it underflowed.
pub(crate) fn product<T: Real>(a: &[T], b: &[T], out: &mut [T]) -> Option<f64> {
    latens_math::vectorized(
        #[inline(always)]
        || {
            for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
                *out = a * b;
            }
            let sum = sum(out);
            if !(f64::MIN_POSITIVE..f64::MAX).contains(&sum) {
                return None;
            }
            let scale = T::of(1.0 / sum);
            out.iter_mut().for_each(|out| *out = flush(*out * scale));
            Some(sum)
        },
    )
}

/// Smaller values of α and β are set to zero, so that no factor is subnormal, which slows processors down a
/// hundredfold.
const SMALLEST: f64 = 1e-30;

/// The smallest share of the probability mass at which the values set to zero are negligible. They add up to at most
/// k·10⁻²⁸, or to k·10⁻²⁰ in a dense model, which also sets small transitions to zero.
pub(crate) fn smallest_share<T: Real>(tables: &Tables<T>) -> f64 {
    if tables.is_dense() { 1e-14 } else { 1e-22 }
}

#[inline(always)]
fn flush<T: Real>(value: T) -> T {
    if value < T::of(SMALLEST) { T::zero() } else { value }
}

#[inline(always)]
fn sum<T: Real>(values: &[T]) -> f64 {
    /// Number of partial sums: the compiler may not reorder additions by itself.
    const LANES: usize = 16;
    let mut lanes = [T::zero(); LANES];
    values.chunks(LANES).for_each(|chunk| add(&mut lanes, chunk));
    lanes.iter().map(|lane| lane.wide()).sum()
}

#[inline(always)]
pub(crate) fn largest<T: Real>(values: &[T]) -> T {
    values.iter().fold(T::zero(), |max, &value| if value > max { value } else { max })
}

/// out = a ∘ b, scaled to a maximum of 1.
pub(crate) fn scaled_product<T: Real>(a: &[T], b: &[T], out: &mut [T]) {
    latens_math::vectorized(
        #[inline(always)]
        || {
            let mut max = T::zero();
            for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
                *out = a * b;
                max = if *out > max { *out } else { max };
            }
            let scale = T::one() / max;
            out.iter_mut().for_each(|out| *out = flush(*out * scale));
        },
    );
}

#[inline(always)]
pub(crate) fn add<T: Real>(sums: &mut [T], values: &[T]) {
    sums.iter_mut().zip(values).for_each(|(sum, &value)| *sum += value);
}
