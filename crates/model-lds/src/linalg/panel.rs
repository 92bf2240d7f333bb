//! Tall matrices with one row per word, row-major in the precision T, processed in blocks of rows by all threads.

use latens_math::Real;
use latens_math::linalg::{Accum, Mat, MatMut, MatRef, matmul};
use rayon::prelude::*;
use std::ops::Range;

/// Alignment of rows in numbers: a whole number of SIMD vectors and of cache lines.
const ALIGN: usize = 16;

/// Number of rows per block of work.
const BLOCK_ROWS: usize = 512;

/// A tall row-major matrix whose rows are padded to `stride` numbers.
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

    /// A matrix of zeros without padding between its rows.
    pub(crate) fn unpadded(n_rows: usize, n_cols: usize) -> Panel<T> {
        Panel { n_rows, n_cols, stride: n_cols, values: vec![T::zero(); n_rows * n_cols] }
    }

    pub(crate) fn from_rows(n_rows: usize, n_cols: usize, values: &[T]) -> Panel<T> {
        assert_eq!(values.len(), n_rows * n_cols, "`values` must hold `n_rows` whole rows");
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

    /// All numbers, padding included; rows start at multiples of the stride.
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

    /// The rows without padding.
    pub(crate) fn to_rows(&self) -> Vec<T> {
        self.rows().flatten().copied().collect()
    }

    /// A parallel iterator over blocks of `n_rows` rows, each with the index of its first row.
    pub(crate) fn par_blocks(
        &mut self,
        n_rows: usize,
    ) -> impl IndexedParallelIterator<Item = (usize, &mut [T])> {
        let stride = self.stride;
        self.values.par_chunks_mut(n_rows * stride).enumerate().map(move |(i, b)| (i * n_rows, b))
    }

    /// A parallel iterator over consecutive ranges of rows that cover the matrix.
    pub(crate) fn par_parts<'a>(
        &'a mut self,
        parts: &'a [Range<usize>],
    ) -> impl IndexedParallelIterator<Item = (Range<usize>, &'a mut [T])> {
        par_parts(&mut self.values, self.stride, parts)
    }

    /// Multiplies each row by its factor.
    pub(crate) fn scale_rows(&mut self, factors: &[T]) {
        let stride = self.stride;
        self.par_blocks(BLOCK_ROWS).for_each(|(first, block)| {
            for (row, &factor) in block.chunks_exact_mut(stride).zip(&factors[first..]) {
                row.iter_mut().for_each(|value| *value *= factor);
            }
        });
    }

    /// Multiplies each column by its factor.
    pub(crate) fn scale_columns(&mut self, factors: &[T]) {
        let stride = self.stride;
        self.par_blocks(BLOCK_ROWS).for_each(|(_, block)| {
            for row in block.chunks_exact_mut(stride) {
                row.iter_mut().zip(factors).for_each(|(value, &factor)| *value *= factor);
            }
        });
    }

    /// Multiplies the matrix in place by a small square matrix on the right.
    pub(crate) fn times_in_place(&mut self, right: &Mat<f64>) {
        let (n, stride) = (self.n_cols, self.stride);
        assert!(right.nrows() == n && right.ncols() == n, "`right` must be {n} by {n}");
        let right = RightFactor::<T>::new(right.as_ref());
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

/// The stride of a padded matrix with `n_cols` columns.
pub(crate) fn stride(n_cols: usize) -> usize {
    let whole_lines = n_cols.next_multiple_of(ALIGN);
    // Where padding to a cache line would waste much of a row, pad to vectors of 256 bits only.
    if 16 * (whole_lines - n_cols) > n_cols {
        n_cols.next_multiple_of(ALIGN / 2)
    } else {
        whole_lines
    }
}

/// [`Panel::par_parts`] for a slice whose rows start at multiples of `stride`.
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

/// A matrix view of rows of `n_cols` numbers that start at multiples of `stride`.
pub(crate) fn view<T>(values: &[T], n_rows: usize, n_cols: usize, stride: usize) -> MatRef<'_, T> {
    MatRef::from_column_major_slice_with_stride(values, n_cols, n_rows, stride).transpose()
}

/// The mutable form of [`view`].
///
/// It transposes a column-major view, since the row-major constructor of faer 0.24 takes the stride for that of
/// columns.
pub(crate) fn view_mut<T>(
    values: &mut [T],
    n_rows: usize,
    n_cols: usize,
    stride: usize,
) -> MatMut<'_, T> {
    MatMut::from_column_major_slice_with_stride_mut(values, n_cols, n_rows, stride).transpose_mut()
}

/// A small matrix in the precision T, the right factor of products with tall matrices.
///
/// It is stored transposed, the layout in which products read it without repacking, and padded to whole vectors.
/// Products also read the padding: uninitialized memory there may hold subnormal numbers, which are about a hundred
/// times slower.
pub(crate) struct RightFactor<T> {
    values: Mat<T>,
    n_cols: usize,
}

impl<T: Real> RightFactor<T> {
    pub(crate) fn new(x: MatRef<'_, f64>) -> RightFactor<T> {
        let mut values = Mat::zeros(x.ncols().next_multiple_of(ALIGN), x.nrows());
        for i in 0..x.nrows() {
            let row = x.row(i);
            let out = values.col_as_slice_mut(i).iter_mut();
            out.zip(row.iter()).for_each(|(out, &value)| *out = T::of(value));
        }
        RightFactor { values, n_cols: x.ncols() }
    }

    pub(crate) fn view(&self) -> MatRef<'_, T> {
        self.values.as_ref().subrows(0, self.n_cols).transpose()
    }
}

/// The product of a tall matrix and a small one.
pub(crate) fn times<T: Real>(left: MatRef<'_, T>, right: &Mat<f64>) -> Panel<T> {
    let mut out = Panel::zeros(left.nrows(), right.ncols());
    let right = RightFactor::<T>::new(right.as_ref());
    let (n_cols, stride) = (out.n_cols, out.stride);
    out.par_blocks(BLOCK_ROWS).for_each(|(first, block)| {
        let n_rows = block.len() / stride;
        let out = view_mut(block, n_rows, n_cols, stride);
        let left = left.subrows(first, n_rows);
        matmul(out, Accum::Replace, left, right.view());
    });
    out
}
