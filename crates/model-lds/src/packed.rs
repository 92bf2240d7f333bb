//! Tall matrices of packed numbers, for the block Hankel matrix.

use crate::packing::Packing;
use crate::panel::{Factor, view, view_mut};
use latens_math::Strip;
use latens_math::linalg::{Accum, Mat, matmul};
use rayon::prelude::*;
use std::ops::Range;

/// So many rows lie together, and are worked on at once.
pub(crate) const ROWS: usize = 512;

/// A matrix of many rows: [`ROWS`] rows after [`ROWS`] rows, each of these strip after strip.
#[derive(Clone, Debug)]
pub(crate) struct Packed<T: Packing> {
    n_rows: usize,
    n_cols: usize,
    strips: Vec<Range<usize>>,
    values: Vec<T::Packed>,
    /// One for each row of a strip, in the same order.
    factors: Vec<T::Factor>,
}

impl<T: Packing> Packed<T> {
    /// Zeros, in strips of at most `widest` columns.
    fn zeros(n_rows: usize, n_cols: usize, widest: usize) -> Packed<T> {
        Packed::with_strips(n_rows, n_cols, Strip::<T>::ranges(n_cols, widest))
    }

    /// A matrix of zeros of the same form.
    pub(crate) fn zeros_like(&self) -> Packed<T> {
        Packed::with_strips(self.n_rows, self.n_cols, self.strips.clone())
    }

    fn with_strips(n_rows: usize, n_cols: usize, strips: Vec<Range<usize>>) -> Packed<T> {
        let values = vec![T::Packed::default(); n_rows * n_cols];
        let factors = vec![T::Factor::default(); n_rows * strips.len()];
        Packed { n_rows, n_cols, strips, values, factors }
    }

    /// Several matrices that lie side by side, from their rows; in strips of at most `widest` columns.
    pub(crate) fn side_by_side(
        n: usize,
        (n_rows, n_cols): (usize, usize),
        widest: usize,
        row: impl Fn(usize, &mut [T]) + Sync,
    ) -> Vec<Packed<T>> {
        let mut all = vec![Packed::zeros(n_rows, n_cols, widest); n];
        let mut blocks: Vec<_> = all.iter_mut().map(|one| one.blocks_mut().into_iter()).collect();
        let beside = |_| blocks.iter_mut().flat_map(|blocks| blocks.next()).collect();
        let blocks: Vec<Vec<BlockMut<'_, T>>> = (0..n_rows.div_ceil(ROWS)).map(beside).collect();
        let scratch = || vec![T::zero(); ROWS * n * n_cols];
        blocks.into_par_iter().for_each_init(scratch, |scratch, mut blocks| {
            let rows = scratch.chunks_exact_mut(n * n_cols).take(blocks[0].n_rows);
            rows.enumerate().for_each(|(i, out)| row(blocks[0].first + i, out));
            for (i, block) in blocks.iter_mut().enumerate() {
                block.pack(&scratch[i * n_cols..], n * n_cols);
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

    /// How many columns the widest strip has.
    pub(crate) fn widest(&self) -> usize {
        self.strips.iter().map(|strip| strip.len()).max().unwrap_or(0)
    }

    /// The numbers of a strip, in place of what `out` has.
    pub(crate) fn unpack_strip(&self, strip: usize, out: &mut Strip<T>) {
        let width = self.strips[strip].len();
        out.set_width(width);
        let outs = out.values_mut().par_chunks_mut(ROWS * width);
        outs.enumerate().for_each(|(i, out)| self.block(i).unpack_strip(strip, out, width));
    }

    /// Puts other numbers in place of a strip; their rows begin at multiples of `stride`.
    pub(crate) fn pack_strip(&mut self, strip: usize, values: &[T], stride: usize) {
        self.blocks_mut().into_par_iter().for_each(|mut block| {
            block.pack_strip(strip, &values[block.first * stride..], stride);
        });
    }

    /// The product with a small square matrix on the right, in place of it.
    pub(crate) fn times_in_place(&mut self, right: &Mat<f64>) {
        let (n, right) = (self.n_cols, Factor::<T>::new(right.as_ref()));
        let scratch = || [vec![T::zero(); ROWS * n], vec![T::zero(); ROWS * n]];
        self.blocks_mut().into_par_iter().for_each_init(scratch, |[from, to], mut block| {
            block.as_ref().unpack(from);
            let from = view(from, block.n_rows, n, n);
            let out = view_mut(to, block.n_rows, n, n);
            matmul(out, Accum::Replace, from, right.view());
            block.pack(to, n);
        });
    }

    pub(crate) fn n_blocks(&self) -> usize {
        self.n_rows.div_ceil(ROWS)
    }

    pub(crate) fn block(&self, i: usize) -> Block<'_, T> {
        let first = i * ROWS;
        let rows = first..(first + ROWS).min(self.n_rows);
        let n_strips = self.strips.len();
        Block {
            n_rows: rows.len(),
            strips: &self.strips,
            values: &self.values[rows.start * self.n_cols..rows.end * self.n_cols],
            factors: &self.factors[rows.start * n_strips..rows.end * n_strips],
        }
    }

    fn blocks_mut(&mut self) -> Vec<BlockMut<'_, T>> {
        let (n_cols, strips) = (self.n_cols, &self.strips);
        let values = self.values.chunks_mut(ROWS * n_cols);
        let factors = self.factors.chunks_mut(ROWS * strips.len());
        let blocks = values.zip(factors).enumerate().map(|(i, (values, factors))| {
            let n_rows = values.len() / n_cols;
            BlockMut { first: i * ROWS, n_rows, strips, values, factors }
        });
        blocks.collect()
    }
}

/// Some rows of a matrix.
pub(crate) struct Block<'a, T: Packing> {
    pub(crate) n_rows: usize,
    strips: &'a [Range<usize>],
    values: &'a [T::Packed],
    factors: &'a [T::Factor],
}

struct BlockMut<'a, T: Packing> {
    first: usize,
    n_rows: usize,
    strips: &'a [Range<usize>],
    values: &'a mut [T::Packed],
    factors: &'a mut [T::Factor],
}

impl<T: Packing> Block<'_, T> {
    /// All numbers, row after row.
    pub(crate) fn unpack(&self, out: &mut [T]) {
        let n_cols = self.strips.last().map_or(0, |last| last.end);
        for (strip, columns) in self.strips.iter().enumerate() {
            self.unpack_strip(strip, &mut out[columns.start..], n_cols);
        }
    }

    /// Those of a strip; rows begin at multiples of `stride`.
    fn unpack_strip(&self, strip: usize, out: &mut [T], stride: usize) {
        let columns = &self.strips[strip];
        let width = columns.len();
        let values = self.values[columns.start * self.n_rows..].chunks_exact(width);
        let factors = &self.factors[strip * self.n_rows..][..self.n_rows];
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                for ((values, &factor), out) in values.zip(factors).zip(out.chunks_mut(stride)) {
                    T::unpack(values, factor, &mut out[..width]);
                }
            },
        );
    }
}

impl<T: Packing> BlockMut<'_, T> {
    fn as_ref(&self) -> Block<'_, T> {
        let BlockMut { n_rows, strips, values, factors, .. } = self;
        Block { n_rows: *n_rows, strips, values, factors }
    }

    /// Puts rows that begin at multiples of `stride` in place of these.
    fn pack(&mut self, values: &[T], stride: usize) {
        for (strip, columns) in self.strips.iter().enumerate() {
            self.pack_strip(strip, &values[columns.start..], stride);
        }
    }

    fn pack_strip(&mut self, strip: usize, values: &[T], stride: usize) {
        let columns = &self.strips[strip];
        let width = columns.len();
        let out = self.values[columns.start * self.n_rows..].chunks_exact_mut(width);
        let factors = &mut self.factors[strip * self.n_rows..][..self.n_rows];
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                for ((out, factor), row) in out.zip(factors).zip(values.chunks(stride)) {
                    *factor = T::pack(&row[..width], out);
                }
            },
        );
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn dense<T: Packing>(packed: &Packed<T>) -> Mat<f64> {
        let mut out = Mat::zeros(packed.n_rows, packed.n_cols);
        for (strip, columns) in packed.strips().iter().enumerate() {
            let mut unpacked = Strip::zeros(packed.n_rows, packed.widest());
            packed.unpack_strip(strip, &mut unpacked);
            for (i, row) in unpacked.values().chunks_exact(columns.len()).enumerate() {
                row.iter().zip(columns.clone()).for_each(|(x, j)| out[(i, j)] = x.wide());
            }
        }
        out
    }

    #[test]
    fn rows_come_back_from_where_they_were_put() {
        let n_cols = 70;
        let number = |row: usize, j: usize| (1000 * row + j) as f64;
        let parts = Packed::<f64>::side_by_side(3, (600, n_cols), 32, |row, out| {
            out.iter_mut().enumerate().for_each(|(j, out)| *out = number(row, j));
        });
        for (i, part) in parts.iter().enumerate() {
            let expected = Mat::from_fn(600, n_cols, |row, j| number(row, i * n_cols + j));
            assert_eq!(dense(part), expected);
        }
    }
}
