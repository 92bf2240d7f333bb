//! Sums of scores over the features of tokens, and products of encoder rows with weights.

use crate::tagging::features::examples::Examples;
use crate::tagging::features::lexical::NO_ATTRIBUTE;
use crate::tagging::features::rows::{NO_ROW, RowValues, Rows};
use crate::tagging::weights::layout::Layout;
use latens_math::Real;
use latens_math::linalg::{Accum, MatMut, MatRef, Par};
use latens_nn::multiply;
use rayon::prelude::*;
use std::ops::Range;

/// Number of rows per parallel task.
const CHUNK: usize = 512;

/// Sums the scores of the groups, attributes and rows of tokens.
pub(crate) struct TokenSums<'a, T> {
    pub(crate) examples: &'a Examples,
    pub(crate) layout: &'a Layout,
    pub(crate) weights: &'a [f64],
    pub(crate) group_scores: &'a [T],
    pub(crate) row_scores: &'a [Vec<T>],
    pub(crate) stride: usize,
}

impl<T: Real> TokenSums<'_, T> {
    /// Writes the scores of the tokens of one sentence to `out`.
    #[inline(always)]
    pub(crate) fn write(&self, tokens: Range<usize>, out: &mut [T]) {
        for (token, out) in tokens.clone().zip(out.chunks_exact_mut(self.stride)) {
            out.fill(T::zero());
            for &group in self.examples.lexical.groups_of(token) {
                add_row(out, &self.group_scores[group as usize * self.stride..][..self.stride]);
            }
            for &attribute in self.examples.lexical.singles_of(token) {
                if attribute != NO_ATTRIBUTE {
                    let range = self.layout.attribute(attribute as usize);
                    for (&tag, &w) in
                        self.layout.tags[range.clone()].iter().zip(&self.weights[range])
                    {
                        out[usize::from(tag)] += T::of(w);
                    }
                }
            }
            let n_positions = self.layout.n_positions;
            for (block, rows) in self.examples.blocks.iter().enumerate() {
                for position in 0..n_positions {
                    let at = (token + position).wrapping_sub(self.examples.window);
                    if !tokens.contains(&at) || rows.of_token[at] == NO_ROW {
                        continue;
                    }
                    let scores = &self.row_scores[block * n_positions + position];
                    add_row(
                        out,
                        &scores[rows.of_token[at] as usize * self.stride..][..self.stride],
                    );
                }
            }
        }
    }
}

#[inline(always)]
fn add_row<T: Real>(out: &mut [T], row: &[T]) {
    out.iter_mut().zip(row).for_each(|(out, &value)| *out += value);
}

/// out = Σ rows. Long sums are split into parts that are added in double precision, to limit rounding errors.
#[inline(always)]
pub(crate) fn add_rows<T: Real>(
    rows: impl Iterator<Item = usize>,
    all: &[T],
    stride: usize,
    out: &mut [T],
) {
    const PART: usize = 256;
    out.fill(T::zero());
    let mut total: Vec<f64> = Vec::new();
    for (i, row) in rows.enumerate() {
        if i % PART == 0 && i > 0 {
            total.resize(stride, 0.0);
            total.iter_mut().zip(&*out).for_each(|(total, out)| *total += out.wide());
            out.fill(T::zero());
        }
        add_row(out, &all[row * stride..][..stride]);
    }
    out.iter_mut().zip(&total).for_each(|(out, total)| *out = T::of(out.wide() + total));
}

/// out = rows · weights. `weights` has `width` values per column of the rows, `out` has `stride` values per row.
pub(crate) fn times_weights<T: Real>(
    rows: &Rows,
    weights: &[T],
    width: usize,
    out: &mut [T],
    stride: usize,
) {
    match &rows.values {
        RowValues::Dense(values) => {
            let values = T::of_floats(values);
            let left = MatRef::from_row_major_slice(&values, rows.n_rows(), rows.n_features);
            let right = MatRef::from_row_major_slice(weights, rows.n_features, width);
            // Not `from_row_major_slice_with_stride_mut`: faer 0.24 swaps its rows and columns.
            let out =
                MatMut::from_column_major_slice_with_stride_mut(out, width, rows.n_rows(), stride);
            let out = out.transpose_mut();
            multiply(out, Accum::Replace, left, right, Par::rayon(0));
        }
        RowValues::Sparse { rows, .. } => {
            out.par_chunks_mut(CHUNK * stride).enumerate().for_each(|(chunk, out)| {
                for (i, out) in out.chunks_exact_mut(stride).enumerate() {
                    out.fill(T::zero());
                    for (column, value) in rows.row(chunk * CHUNK + i) {
                        let weights = &weights[column * width..(column + 1) * width];
                        let value = T::of(f64::from(value));
                        out.iter_mut().zip(weights).for_each(|(out, &w)| *out += value * w);
                    }
                }
            });
        }
    }
}

/// gradient = rowsᵀ · sums.
pub(crate) fn transposed_times<T: Real>(
    rows: &Rows,
    sums: &[T],
    stride: usize,
    width: usize,
    gradient: &mut [f64],
) {
    match &rows.values {
        RowValues::Dense(values) => {
            let values = T::of_floats(values);
            let left = MatRef::from_row_major_slice(&values, rows.n_rows(), rows.n_features);
            let right =
                MatRef::from_row_major_slice_with_stride(sums, rows.n_rows(), width, stride);
            let mut product = vec![T::zero(); gradient.len()];
            let out = MatMut::from_row_major_slice_mut(&mut product, rows.n_features, width);
            multiply(out, Accum::Replace, left.transpose(), right, Par::rayon(0));
            gradient.iter_mut().zip(product).for_each(|(g, product)| *g = product.wide());
        }
        RowValues::Sparse { columns, .. } => {
            gradient.par_chunks_mut(width).enumerate().for_each(|(column, gradient)| {
                for (row, value) in columns.row(column) {
                    let sums = &sums[row * stride..][..width];
                    for (g, sum) in gradient.iter_mut().zip(sums) {
                        *g += f64::from(value) * sum.wide();
                    }
                }
            });
        }
    }
}
