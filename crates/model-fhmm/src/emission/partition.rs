//! Normalizers of all joint states: Z(s) = Σ_Y exp(b_Y + Σ_m θ[Y, m, s^m]).

use crate::distribution::Distribution;
use crate::shape::Shape;
use crate::tensor::kronecker;
use latens_math::Real;
use latens_math::linalg::{Accum, MatMut, MatRef, matmul};
use rayon::prelude::*;

/// Number of words per block.
pub(crate) const BLOCK_WORDS: usize = 256;
/// Maximum number of partial sums over words. It is fixed, so that results do not depend on the number of threads.
const SHARDS: usize = 16;

/// e^θ, e^b, and Z of every joint state.
#[derive(Clone, Debug)]
pub(crate) struct PartitionTable<T> {
    /// e^θ: words × layers × states.
    pub(crate) exps: Vec<T>,
    /// e^b: words.
    pub(crate) base: Vec<T>,
    /// Z: joint states of the first group × those of the second. Empty if there are too many.
    pub(crate) values: Vec<T>,
}

/// Number of words per shard.
pub(crate) fn shard_words(n_words: usize) -> usize {
    n_words.div_ceil(SHARDS).next_multiple_of(BLOCK_WORDS)
}

impl<T: Real> PartitionTable<T> {
    pub(crate) fn of(distribution: &Distribution<T>) -> PartitionTable<T> {
        let exps = exponentials(&distribution.theta);
        let base = exponentials(&distribution.base);
        let values = partition(distribution.shape, &exps, &base);
        PartitionTable { exps, base, values }
    }

    /// ln Z.
    pub(crate) fn logarithms(&self) -> Vec<T> {
        self.values.iter().map(|z| z.ln()).collect()
    }

    /// Whether every Z is safely within the range of single precision.
    pub(crate) fn is_in_range(&self) -> bool {
        self.values.iter().all(|z| (1e-30..1e30).contains(&z.wide()))
    }
}

pub(crate) fn exponentials<T: Real>(values: &[T]) -> Vec<T> {
    let mut out = values.to_vec();
    out.par_chunks_mut(1 << 14).for_each(|chunk| {
        latens_math::vectorized(
            #[inline(always)]
            || chunk.iter_mut().for_each(|x| *x = x.exp_of()),
        );
    });
    out
}

/// Computes Z = Aᵀ B, with A the products of e^θ over the layers of the first group times e^b, and B those over the
/// second group.
pub(crate) fn partition<T: Real>(shape: Shape, exps: &[T], base: &[T]) -> Vec<T> {
    let shard = shard_words(shape.n_words);
    let shards = exps.par_chunks(shard * shape.row()).zip(base.par_chunks(shard));
    let parts: Vec<Vec<T>> = shards
        .map(|(exps, base)| {
            let mut sums = vec![T::zero(); shape.n_joint()];
            let mut products = Products::new(shape);
            for (exps, base) in exps.chunks(BLOCK_WORDS * shape.row()).zip(base.chunks(BLOCK_WORDS))
            {
                products.fill(exps, base);
                products.add_partition(&mut sums);
            }
            sums
        })
        .collect();
    add_parts(parts)
}

/// Sums parts in order.
pub(crate) fn add_parts<T: Real>(parts: Vec<Vec<T>>) -> Vec<T> {
    let mut parts = parts.into_iter();
    let mut sum = parts.next().unwrap_or_default();
    for part in parts {
        sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
    }
    sum
}

/// Products of e^θ over the layers of each group, for a block of words.
pub(crate) struct Products<T> {
    shape: Shape,
    n: usize,
    /// Includes the factor e^b.
    pub(crate) first: Vec<T>,
    pub(crate) second: Vec<T>,
}

impl<T: Real> Products<T> {
    pub(crate) fn new(shape: Shape) -> Products<T> {
        Products { shape, n: 0, first: vec![], second: vec![] }
    }

    /// Computes the products of both groups; `exps` is words × layers × states.
    pub(crate) fn fill(&mut self, exps: &[T], base: &[T]) {
        self.n = base.len();
        self.fill_first(exps, base);
        self.fill_second(exps);
    }

    /// Recomputes the products of the group of a layer.
    pub(crate) fn refill(&mut self, layer: usize, exps: &[T], base: &[T]) {
        if layer < self.shape.first().end {
            self.fill_first(exps, base)
        } else {
            self.fill_second(exps)
        }
    }

    /// Computes the products of the first group.
    pub(crate) fn fill_first(&mut self, exps: &[T], base: &[T]) {
        let shape = self.shape;
        self.first.resize(self.n * shape.n_rows(), T::zero());
        latens_math::vectorized(
            #[inline(always)]
            || {
                let rows = self.first.chunks_exact_mut(shape.n_rows());
                let words = exps.chunks_exact(shape.row()).zip(base);
                for (out, (exps, &base)) in rows.zip(words) {
                    kronecker(&exps[shape.layers(shape.first())], shape.n_states, base, out);
                }
            },
        );
    }

    /// Computes the products of the second group.
    pub(crate) fn fill_second(&mut self, exps: &[T]) {
        let shape = self.shape;
        self.second.resize(self.n * shape.n_columns(), T::zero());
        latens_math::vectorized(
            #[inline(always)]
            || {
                let rows = self.second.chunks_exact_mut(shape.n_columns());
                for (out, exps) in rows.zip(exps.chunks_exact(shape.row())) {
                    kronecker(&exps[shape.layers(shape.second())], shape.n_states, T::one(), out);
                }
            },
        );
    }

    pub(crate) fn first(&self) -> MatRef<'_, T> {
        MatRef::from_row_major_slice(&self.first, self.n, self.shape.n_rows())
    }

    pub(crate) fn second(&self) -> MatRef<'_, T> {
        MatRef::from_row_major_slice(&self.second, self.n, self.shape.n_columns())
    }

    /// Adds the contribution of this block to Z.
    pub(crate) fn add_partition(&self, sums: &mut [T]) {
        let (n_rows, n_columns) = (self.shape.n_rows(), self.shape.n_columns());
        let sums = MatMut::from_row_major_slice_mut(sums, n_rows, n_columns);
        let first = self.first().transpose();
        matmul(sums, Accum::Add, first, self.second());
    }
}
