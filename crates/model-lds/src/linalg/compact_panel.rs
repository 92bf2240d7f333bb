//! Tall matrices of quantized numbers, for products with the block Hankel matrix.

use crate::linalg::panel::{RightFactor, view, view_mut};
use crate::linalg::quantization::Quantize;
use latens_math::Strip;
use latens_math::linalg::{Accum, Mat, matmul};
use rayon::prelude::*;
use std::ops::Range;

/// Number of rows per block.
pub(crate) const BLOCK_ROWS: usize = 512;

/// Number of rows and columns of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) n_rows: usize,
    pub(crate) n_cols: usize,
}

/// A tall matrix of quantized numbers, stored block by block of [`BLOCK_ROWS`] rows, and each block strip by strip of
/// columns.
#[derive(Clone, Debug)]
pub(crate) struct CompactPanel<T: Quantize> {
    n_rows: usize,
    n_cols: usize,
    strips: Vec<Range<usize>>,
    codes: Vec<T::Code>,
    /// One scale for each row of a strip, in the same order.
    scales: Vec<T::Scale>,
}

impl<T: Quantize> CompactPanel<T> {
    /// A matrix of zeros, in strips of at most `max_strip` columns.
    fn zeros(Shape { n_rows, n_cols }: Shape, max_strip: usize) -> CompactPanel<T> {
        CompactPanel::with_strips(n_rows, n_cols, Strip::<T>::ranges(n_cols, max_strip))
    }

    /// A matrix of zeros with the same shape and strips.
    pub(crate) fn zeros_like(&self) -> CompactPanel<T> {
        CompactPanel::with_strips(self.n_rows, self.n_cols, self.strips.clone())
    }

    fn with_strips(n_rows: usize, n_cols: usize, strips: Vec<Range<usize>>) -> CompactPanel<T> {
        let codes = vec![T::Code::default(); n_rows * n_cols];
        let scales = vec![T::Scale::default(); n_rows * strips.len()];
        CompactPanel { n_rows, n_cols, strips, codes, scales }
    }

    /// `n` matrices of one shape, in strips of at most `max_strip` columns, from `row`, which fills row i of all of
    /// them side by side.
    pub(crate) fn side_by_side(
        n: usize,
        shape: Shape,
        max_strip: usize,
        row: impl Fn(usize, &mut [T]) + Sync,
    ) -> Vec<CompactPanel<T>> {
        let Shape { n_rows, n_cols } = shape;
        let mut all = vec![CompactPanel::zeros(shape, max_strip); n];
        let mut blocks: Vec<_> = all.iter_mut().map(|one| one.blocks_mut().into_iter()).collect();
        let beside = |_| blocks.iter_mut().flat_map(|blocks| blocks.next()).collect();
        let n_blocks = n_rows.div_ceil(BLOCK_ROWS);
        let blocks: Vec<Vec<BlockMut<'_, T>>> = (0..n_blocks).map(beside).collect();
        let scratch = || vec![T::zero(); BLOCK_ROWS * n * n_cols];
        blocks.into_par_iter().for_each_init(scratch, |scratch, mut blocks| {
            let rows = scratch.chunks_exact_mut(n * n_cols).take(blocks[0].n_rows);
            rows.enumerate().for_each(|(i, out)| row(blocks[0].first + i, out));
            for (i, block) in blocks.iter_mut().enumerate() {
                block.write(&scratch[i * n_cols..], n * n_cols);
            }
        });
        all
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.n_rows
    }

    pub(crate) fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// The columns of each strip.
    pub(crate) fn strips(&self) -> &[Range<usize>] {
        &self.strips
    }

    /// The number of columns of the widest strip.
    pub(crate) fn max_strip(&self) -> usize {
        self.strips.iter().map(|strip| strip.len()).max().unwrap_or(0)
    }

    /// Dequantizes a strip into `out`, which takes its width.
    pub(crate) fn read_strip(&self, strip: usize, out: &mut Strip<T>) {
        let width = self.strips[strip].len();
        out.set_width(width);
        let outs = out.values_mut().par_chunks_mut(BLOCK_ROWS * width);
        outs.enumerate().for_each(|(i, out)| self.block(i).read_strip(strip, out, width));
    }

    /// Quantizes `values` into a strip; their rows start at multiples of `stride`.
    pub(crate) fn write_strip(&mut self, strip: usize, values: &[T], stride: usize) {
        self.blocks_mut().into_par_iter().for_each(|mut block| {
            block.write_strip(strip, &values[block.first * stride..], stride);
        });
    }

    /// Multiplies the matrix in place by a small square matrix on the right.
    pub(crate) fn times_in_place(&mut self, right: &Mat<f64>) {
        let (n, right) = (self.n_cols, RightFactor::<T>::new(right.as_ref()));
        let scratch = || [vec![T::zero(); BLOCK_ROWS * n], vec![T::zero(); BLOCK_ROWS * n]];
        self.blocks_mut().into_par_iter().for_each_init(scratch, |[from, to], mut block| {
            block.as_ref().read(from);
            let from = view(from, block.n_rows, n, n);
            let out = view_mut(to, block.n_rows, n, n);
            matmul(out, Accum::Replace, from, right.view());
            block.write(to, n);
        });
    }

    pub(crate) fn n_blocks(&self) -> usize {
        self.n_rows.div_ceil(BLOCK_ROWS)
    }

    pub(crate) fn block(&self, i: usize) -> Block<'_, T> {
        let first = i * BLOCK_ROWS;
        let rows = first..(first + BLOCK_ROWS).min(self.n_rows);
        let n_strips = self.strips.len();
        Block {
            n_rows: rows.len(),
            strips: &self.strips,
            codes: &self.codes[rows.start * self.n_cols..rows.end * self.n_cols],
            scales: &self.scales[rows.start * n_strips..rows.end * n_strips],
        }
    }

    fn blocks_mut(&mut self) -> Vec<BlockMut<'_, T>> {
        let (n_cols, strips) = (self.n_cols, &self.strips);
        let codes = self.codes.chunks_mut(BLOCK_ROWS * n_cols);
        let scales = self.scales.chunks_mut(BLOCK_ROWS * strips.len());
        let blocks = codes.zip(scales).enumerate().map(|(i, (codes, scales))| {
            let n_rows = codes.len() / n_cols;
            BlockMut { first: i * BLOCK_ROWS, n_rows, strips, codes, scales }
        });
        blocks.collect()
    }
}

/// A block of consecutive rows of a [`CompactPanel`].
pub(crate) struct Block<'a, T: Quantize> {
    pub(crate) n_rows: usize,
    strips: &'a [Range<usize>],
    codes: &'a [T::Code],
    scales: &'a [T::Scale],
}

struct BlockMut<'a, T: Quantize> {
    first: usize,
    n_rows: usize,
    strips: &'a [Range<usize>],
    codes: &'a mut [T::Code],
    scales: &'a mut [T::Scale],
}

impl<T: Quantize> Block<'_, T> {
    /// Dequantizes all numbers, row-major.
    pub(crate) fn read(&self, out: &mut [T]) {
        let n_cols = self.strips.last().map_or(0, |last| last.end);
        for (strip, columns) in self.strips.iter().enumerate() {
            self.read_strip(strip, &mut out[columns.start..], n_cols);
        }
    }

    /// Dequantizes a strip; the rows of `out` start at multiples of `stride`.
    fn read_strip(&self, strip: usize, out: &mut [T], stride: usize) {
        let columns = &self.strips[strip];
        let width = columns.len();
        let codes = &self.codes[columns.start * self.n_rows..];
        let scales = &self.scales[strip * self.n_rows..][..self.n_rows];
        latens_math::vectorized(
            #[inline(always)]
            || {
                let rows = codes.chunks_exact(width).zip(scales);
                for ((codes, &scale), out) in rows.zip(out.chunks_mut(stride)) {
                    T::dequantize(codes, scale, &mut out[..width]);
                }
            },
        );
    }
}

impl<T: Quantize> BlockMut<'_, T> {
    fn as_ref(&self) -> Block<'_, T> {
        let BlockMut { n_rows, strips, codes, scales, .. } = self;
        Block { n_rows: *n_rows, strips, codes, scales }
    }

    /// Quantizes rows that start at multiples of `stride` into this block.
    fn write(&mut self, values: &[T], stride: usize) {
        for (strip, columns) in self.strips.iter().enumerate() {
            self.write_strip(strip, &values[columns.start..], stride);
        }
    }

    fn write_strip(&mut self, strip: usize, values: &[T], stride: usize) {
        let columns = &self.strips[strip];
        let width = columns.len();
        let codes = &mut self.codes[columns.start * self.n_rows..];
        let scales = &mut self.scales[strip * self.n_rows..][..self.n_rows];
        latens_math::vectorized(
            #[inline(always)]
            || {
                let rows = codes.chunks_exact_mut(width).zip(&mut *scales);
                for ((codes, scale), row) in rows.zip(values.chunks(stride)) {
                    *scale = T::quantize(&row[..width], codes);
                }
            },
        );
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn dense<T: Quantize>(panel: &CompactPanel<T>) -> Mat<f64> {
        let mut out = Mat::zeros(panel.n_rows, panel.n_cols);
        for (strip, columns) in panel.strips().iter().enumerate() {
            let mut values = Strip::zeros(panel.n_rows, panel.max_strip());
            panel.read_strip(strip, &mut values);
            for (i, row) in values.values().chunks_exact(columns.len()).enumerate() {
                row.iter().zip(columns.clone()).for_each(|(x, j)| out[(i, j)] = x.wide());
            }
        }
        out
    }

    #[test]
    fn every_matrix_holds_its_columns_of_the_rows() {
        let n_cols = 70;
        let number = |row: usize, j: usize| (1000 * row + j) as f64;
        let shape = Shape { n_rows: 600, n_cols };
        let parts = CompactPanel::<f64>::side_by_side(3, shape, 32, |row, out| {
            out.iter_mut().enumerate().for_each(|(j, out)| *out = number(row, j));
        });
        for (i, part) in parts.iter().enumerate() {
            let expected = Mat::from_fn(600, n_cols, |row, j| number(row, i * n_cols + j));
            assert_eq!(dense(part), expected);
        }
    }
}
