//! Transition probabilities as products of vectors.

use latens_math::linalg::{Accum, MatMut, MatRef, Par};
use latens_math::{Real, softmax};
use latens_nn::multiply;
use rayon::prelude::*;
use std::ops::Range;

/// Transitions as products: ln a(j|i) = fromᵢ · toⱼ − log_sumᵢ. This form does not underflow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Factors<T> {
    pub(crate) dim: usize,
    /// Z × dim.
    pub(crate) from: Vec<T>,
    /// Z × dim.
    pub(crate) to: Vec<T>,
    /// The log normalizers: Z.
    pub(crate) log_sums: Vec<T>,
}

impl<T: Real> Factors<T> {
    /// Fills in the log normalizers, ln Σⱼ exp(fromᵢ · toⱼ). Works in tiles, so that the Z × Z products are never in
    /// memory together.
    pub(crate) fn normalize(&mut self) {
        const TILE: usize = 64;
        let Factors { dim, from, to, log_sums } = self;
        let n = from.len() / *dim;
        let to = MatRef::from_row_major_slice(&to[..], n, *dim);
        log_sums.resize(n, T::zero());
        let tiles = from.par_chunks(TILE * *dim).zip(log_sums.par_chunks_mut(TILE));
        tiles.for_each(|(from, log_sums)| {
            let mut logits = vec![T::zero(); log_sums.len() * n];
            let from = MatRef::from_row_major_slice(from, log_sums.len(), *dim);
            let out = MatMut::from_row_major_slice_mut(&mut logits, log_sums.len(), n);
            multiply(out, Accum::Replace, from, to.transpose(), Par::Seq);
            log_sums.iter_mut().zip(logits.chunks_exact_mut(n)).for_each(|(log_sum, row)| {
                *log_sum = softmax(row);
            });
        });
    }

    /// a(j|i) for two ranges of states, row-major.
    pub(crate) fn block(&self, from: Range<usize>, to: Range<usize>) -> Vec<T> {
        let mut block = vec![T::zero(); from.len() * to.len()];
        let logits = MatMut::from_row_major_slice_mut(&mut block, from.len(), to.len());
        let left = rows(&self.from, self.dim, from.clone());
        let right = rows(&self.to, self.dim, to.clone());
        multiply(logits, Accum::Replace, left, right.transpose(), Par::Seq);
        for (row, &log_sum) in block.chunks_exact_mut(to.len()).zip(&self.log_sums[from]) {
            row.iter_mut().for_each(|logit| *logit = (*logit - log_sum).exp_of());
        }
        block
    }

    /// a(j|i) for two lists of states, row-major.
    pub(crate) fn pairs(&self, from: &[u32], to: &[u32]) -> Vec<T> {
        let mut pairs = self.products(from, to);
        for (row, &state) in pairs.chunks_exact_mut(to.len().max(1)).zip(from) {
            let log_sum = self.log_sums[state as usize];
            row.iter_mut().for_each(|logit| *logit = (*logit - log_sum).exp_of());
        }
        pairs
    }

    /// ln a(j|i) for two lists of states, row-major.
    pub(crate) fn log_pairs(&self, from: &[u32], to: &[u32]) -> Vec<f64> {
        let products = self.products(from, to);
        let rows = products.chunks_exact(to.len().max(1)).zip(from);
        rows.flat_map(|(row, &state)| {
            let log_sum = self.log_sums[state as usize].wide();
            row.iter().map(move |logit| logit.wide() - log_sum)
        })
        .collect()
    }

    /// fromᵢ · toⱼ for two lists of states, row-major.
    fn products(&self, from: &[u32], to: &[u32]) -> Vec<T> {
        let gather = |rows: &[T], states: &[u32]| -> Vec<T> {
            let row = |&state: &u32| &rows[state as usize * self.dim..][..self.dim];
            states.iter().flat_map(row).copied().collect()
        };
        let (left, right) = (gather(&self.from, from), gather(&self.to, to));
        let mut products = vec![T::zero(); from.len() * to.len()];
        let left = MatRef::from_row_major_slice(&left, from.len(), self.dim);
        let right = MatRef::from_row_major_slice(&right, to.len(), self.dim);
        let out = MatMut::from_row_major_slice_mut(&mut products, from.len(), to.len());
        multiply(out, Accum::Replace, left, right.transpose(), Par::Seq);
        products
    }
}

fn rows<T>(values: &[T], dim: usize, range: Range<usize>) -> MatRef<'_, T> {
    let n_rows = range.len();
    MatRef::from_row_major_slice(&values[range.start * dim..range.end * dim], n_rows, dim)
}
