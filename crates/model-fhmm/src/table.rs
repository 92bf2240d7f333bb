//! Z(s) of all joint states: Σ_Y exp(b_Y + Σ_m θ[Y, m, s^m]).

use crate::parameters::Parameters;
use crate::shape::Shape;
use crate::tensor::kronecker;
use latens_math::Real;
use latens_math::linalg::{Accum, MatMut, MatRef, matmul};
use rayon::prelude::*;

/// Words that are worked on together.
pub(crate) const BLOCK_WORDS: usize = 256;
/// Sums over words are made of at most so many parts, whatever the number of threads.
const SHARDS: usize = 16;

/// e^θ, e^b, and Z of every joint state.
#[derive(Clone, Debug)]
pub(crate) struct Table<T> {
    pub(crate) exps: Vec<T>,
    pub(crate) base: Vec<T>,
    /// Z: joint states of the first group × those of the second.
    pub(crate) values: Vec<T>,
}

/// How many words a shard has.
pub(crate) fn shard_words(n_words: usize) -> usize {
    n_words.div_ceil(SHARDS).next_multiple_of(BLOCK_WORDS)
}

impl<T: Real> Table<T> {
    pub(crate) fn of(parameters: &Parameters<T>) -> Table<T> {
        let exps = exponentials(&parameters.theta);
        let base = exponentials(&parameters.base);
        let values = partition(parameters.shape, &exps, &base);
        Table { exps, base, values }
    }

    /// ln Z.
    pub(crate) fn logarithms(&self) -> Vec<T> {
        self.values.iter().map(|z| z.ln()).collect()
    }

    /// Whether no Z was lost to the range of single precision.
    pub(crate) fn is_sound(&self) -> bool {
        self.values.iter().all(|z| (1e-30..1e30).contains(&z.wide()))
    }
}

pub(crate) fn exponentials<T: Real>(values: &[T]) -> Vec<T> {
    let mut out = values.to_vec();
    out.par_chunks_mut(1 << 14).for_each(|chunk| {
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || chunk.iter_mut().for_each(|x| *x = x.exp_of()),
        );
    });
    out
}

/// Z = Aᵀ B with A the products of e^θ over the first group's layers, with e^b, and B those over the second's.
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

/// The sum of parts, in their order.
pub(crate) fn add_parts<T: Real>(parts: Vec<Vec<T>>) -> Vec<T> {
    let mut parts = parts.into_iter();
    let mut sum = parts.next().unwrap_or_default();
    for part in parts {
        sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
    }
    sum
}

/// For a block of words the products of e^θ over the layers of each group.
pub(crate) struct Products<T> {
    shape: Shape,
    n: usize,
    /// With e^b.
    pub(crate) first: Vec<T>,
    pub(crate) second: Vec<T>,
}

impl<T: Real> Products<T> {
    pub(crate) fn new(shape: Shape) -> Products<T> {
        Products { shape, n: 0, first: vec![], second: vec![] }
    }

    /// `exps` is words × layers × states.
    pub(crate) fn fill(&mut self, exps: &[T], base: &[T]) {
        self.n = base.len();
        self.fill_first(exps, base);
        self.fill_second(exps);
    }

    /// Those of the group of a layer, again.
    pub(crate) fn refill(&mut self, layer: usize, exps: &[T], base: &[T]) {
        if layer < self.shape.first().end {
            self.fill_first(exps, base)
        } else {
            self.fill_second(exps)
        }
    }

    fn fill_first(&mut self, exps: &[T], base: &[T]) {
        let shape = self.shape;
        self.first.resize(self.n * shape.n_rows(), T::zero());
        let rows = self.first.chunks_exact_mut(shape.n_rows());
        let words = exps.chunks_exact(shape.row()).zip(base);
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                for (out, (exps, &base)) in rows.zip(words) {
                    kronecker(&exps[shape.layers(shape.first())], shape.n_states, base, out);
                }
            },
        );
    }

    fn fill_second(&mut self, exps: &[T]) {
        let shape = self.shape;
        self.second.resize(self.n * shape.n_columns(), T::zero());
        let rows = self.second.chunks_exact_mut(shape.n_columns());
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
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

    /// Adds this block's part of Z.
    pub(crate) fn add_partition(&self, sums: &mut [T]) {
        let (n_rows, n_columns) = (self.shape.n_rows(), self.shape.n_columns());
        let sums = MatMut::from_row_major_slice_mut(sums, n_rows, n_columns);
        let first = self.first().transpose();
        matmul(sums, Accum::Add, first, self.second());
    }
}
