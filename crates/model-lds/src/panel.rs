//! Tall matrices, a row a word: stored row after row in the precision T, worked on in blocks of rows by
//! all threads.

use latens_math::Real;
use latens_math::linalg::{Accum, Mat, MatMut, MatRef, matmul};
use rayon::prelude::*;
use std::ops::Range;

/// Rows begin at multiples of so many numbers, which are a whole number of vectors and of lines of the cache.
const ALIGN: usize = 16;

/// So many rows are worked on at once.
const BLOCK_ROWS: usize = 512;

/// A matrix of many rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Panel<T> {
    n_rows: usize,
    n_cols: usize,
    stride: usize,
    values: Vec<T>,
}

impl<T: Real> Panel<T> {
    pub(crate) fn zeros(n_rows: usize, n_cols: usize) -> Panel<T> {
        let stride = stride(n_cols);
        Panel { n_rows, n_cols, stride, values: vec![T::zero(); n_rows * stride] }
    }

    /// A matrix without space between its rows.
    pub(crate) fn compact(n_rows: usize, n_cols: usize) -> Panel<T> {
        Panel { n_rows, n_cols, stride: n_cols, values: vec![T::zero(); n_rows * n_cols] }
    }

    pub(crate) fn from_rows(n_rows: usize, n_cols: usize, values: &[T]) -> Panel<T> {
        assert_eq!(values.len(), n_rows * n_cols, "whole rows");
        let mut panel = Panel::zeros(n_rows, n_cols);
        for row in 0..n_rows {
            panel.row_mut(row).copy_from_slice(&values[row * n_cols..][..n_cols]);
        }
        panel
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.n_rows
    }

    pub(crate) fn n_cols(&self) -> usize {
        self.n_cols
    }

    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// All numbers, rows beginning at multiples of the stride.
    pub(crate) fn values(&self) -> &[T] {
        &self.values
    }

    pub(crate) fn row(&self, row: usize) -> &[T] {
        &self.values[row * self.stride..][..self.n_cols]
    }

    pub(crate) fn row_mut(&mut self, row: usize) -> &mut [T] {
        &mut self.values[row * self.stride..][..self.n_cols]
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &[T]> {
        (0..self.n_rows).map(|row| self.row(row))
    }

    pub(crate) fn view(&self) -> MatRef<'_, T> {
        view(&self.values, self.n_rows, self.n_cols, self.stride)
    }

    /// The rows one after the other, without what lies between them.
    pub(crate) fn to_rows(&self) -> Vec<T> {
        self.rows().flatten().copied().collect()
    }

    /// Blocks of whole rows, with the first row of each, to be worked on at the same time.
    pub(crate) fn par_blocks(
        &mut self,
        n_rows: usize,
    ) -> impl IndexedParallelIterator<Item = (usize, &mut [T])> {
        let stride = self.stride;
        self.values.par_chunks_mut(n_rows * stride).enumerate().map(move |(i, b)| (i * n_rows, b))
    }

    /// Ranges of rows that follow each other from the first to the last, to be worked on at the same time.
    pub(crate) fn par_parts<'a>(
        &'a mut self,
        parts: &'a [Range<usize>],
    ) -> impl IndexedParallelIterator<Item = (Range<usize>, &'a mut [T])> {
        par_parts(&mut self.values, self.stride, parts)
    }

    /// Multiplies each row by a number.
    pub(crate) fn scale_rows(&mut self, factors: &[T]) {
        let stride = self.stride;
        self.par_blocks(BLOCK_ROWS).for_each(|(first, block)| {
            for (row, &factor) in block.chunks_exact_mut(stride).zip(&factors[first..]) {
                row.iter_mut().for_each(|value| *value *= factor);
            }
        });
    }

    /// Multiplies each column by a number.
    pub(crate) fn scale_columns(&mut self, factors: &[T]) {
        let stride = self.stride;
        self.par_blocks(BLOCK_ROWS).for_each(|(_, block)| {
            for row in block.chunks_exact_mut(stride) {
                row.iter_mut().zip(factors).for_each(|(value, &factor)| *value *= factor);
            }
        });
    }

    /// The product with a small square matrix on the right, in place of it.
    pub(crate) fn times_in_place(&mut self, right: &Mat<f64>) {
        let (n, stride) = (self.n_cols, self.stride);
        assert!(right.nrows() == n && right.ncols() == n, "the same shape again");
        let right = Factor::<T>::new(right.as_ref());
        self.par_blocks(BLOCK_ROWS).for_each_init(Vec::new, |copy, (_, block)| {
            copy.clear();
            copy.extend_from_slice(block);
            let n_rows = block.len() / stride;
            let out = view_mut(block, n_rows, n, stride);
            let copy = view(copy, n_rows, n, stride);
            matmul(out, Accum::Replace, copy, right.view());
        });
    }
}

/// Where the rows of a matrix with so many columns begin: at multiples of this.
pub(crate) fn stride(n_cols: usize) -> usize {
    let whole_lines = n_cols.next_multiple_of(ALIGN);
    // Where the rest of a line would be much of a row, whole vectors of 256 bits are enough.
    if 16 * (whole_lines - n_cols) > n_cols {
        n_cols.next_multiple_of(ALIGN / 2)
    } else {
        whole_lines
    }
}

/// [`Panel::par_parts`] of rows that begin at multiples of `stride`.
pub(crate) fn par_parts<'a, T: Send>(
    mut rest: &'a mut [T],
    stride: usize,
    parts: &[Range<usize>],
) -> impl IndexedParallelIterator<Item = (Range<usize>, &'a mut [T])> + use<'a, T> {
    let mut cut = Vec::with_capacity(parts.len());
    for rows in parts {
        let (part, others) = rest.split_at_mut(rows.len() * stride);
        cut.push((rows.clone(), part));
        rest = others;
    }
    cut.into_par_iter()
}

pub(crate) fn view<T>(values: &[T], n_rows: usize, n_cols: usize, stride: usize) -> MatRef<'_, T> {
    MatRef::from_column_major_slice_with_stride(values, n_cols, n_rows, stride).transpose()
}

/// Rows of `n_cols` numbers that begin at multiples of `stride`. Not by the function for row-major slices, which
/// in faer 0.24 takes the stride for that of columns.
pub(crate) fn view_mut<T>(
    values: &mut [T],
    n_rows: usize,
    n_cols: usize,
    stride: usize,
) -> MatMut<'_, T> {
    MatMut::from_column_major_slice_with_stride_mut(values, n_cols, n_rows, stride).transpose_mut()
}

/// A small matrix in the precision T that tall ones are multiplied with from the right.
///
/// It is stored transposed, which is how products read it without rearranging it, and in whole vectors: what lies
/// beyond the last number of a vector takes part in the work, and where it is no part of the matrix may be anything
/// that was in memory before, even numbers that are not normal, with which processors are a hundred times slower.
pub(crate) struct Factor<T> {
    values: Mat<T>,
    n_cols: usize,
}

impl<T: Real> Factor<T> {
    pub(crate) fn new(x: MatRef<'_, f64>) -> Factor<T> {
        let mut values = Mat::zeros(x.ncols().next_multiple_of(ALIGN), x.nrows());
        for i in 0..x.nrows() {
            let row = x.row(i);
            let out = values.col_as_slice_mut(i).iter_mut();
            out.zip(row.iter()).for_each(|(out, &value)| *out = T::of(value));
        }
        Factor { values, n_cols: x.ncols() }
    }

    pub(crate) fn view(&self) -> MatRef<'_, T> {
        self.values.as_ref().subrows(0, self.n_cols).transpose()
    }
}

/// left · right for a tall matrix on the left and a small one on the right.
pub(crate) fn times<T: Real>(left: MatRef<'_, T>, right: &Mat<f64>) -> Panel<T> {
    let mut out = Panel::zeros(left.nrows(), right.ncols());
    let right = Factor::<T>::new(right.as_ref());
    let (n_cols, stride) = (out.n_cols, out.stride);
    out.par_blocks(BLOCK_ROWS).for_each(|(first, block)| {
        let n_rows = block.len() / stride;
        let out = view_mut(block, n_rows, n_cols, stride);
        let left = left.subrows(first, n_rows);
        matmul(out, Accum::Replace, left, right.view());
    });
    out
}
