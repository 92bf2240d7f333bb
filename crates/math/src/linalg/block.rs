//! Products of a few rows with a block of a larger matrix.
//!
//! A general matrix product would spend its time on packing a block that is read only once.
//!
//! In single precision, every vector of sums starts with [`TINY`] instead of zero, so that no sum is subnormal:
//! processors are a hundred times slower with subnormal numbers. Rounding removes the offset except where the whole sum
//! is tiny; sums below [`DUST`] become zero.

use num_traits::Float;
use pulp::{Simd, WithSimd};
use std::iter::Sum;
use std::ops::{AddAssign, Range};

/// Initial value of every sum.
const TINY: f32 = 1e-30;

/// Sums below this magnitude may consist of [`TINY`] alone and are set to zero.
const DUST: f32 = 1e-28;

/// A range of rows and columns of a row-major matrix.
#[derive(Clone, Copy, Debug)]
pub struct BlockRef<'a, T> {
    values: &'a [T],
    stride: usize,
    n_rows: usize,
    n_cols: usize,
}

impl<'a, T: BlockProducts> BlockRef<'a, T> {
    /// Borrows a block of a matrix with `stride` columns.
    ///
    /// # Panics
    /// If the block exceeds the matrix.
    pub fn new(
        matrix: &'a [T],
        stride: usize,
        rows: Range<usize>,
        columns: Range<usize>,
    ) -> BlockRef<'a, T> {
        assert!(
            columns.end <= stride && rows.end * stride <= matrix.len(),
            "the block exceeds the matrix"
        );
        BlockRef {
            values: &matrix[(rows.start * stride + columns.start).min(matrix.len())..],
            stride,
            n_rows: rows.len(),
            n_cols: columns.len(),
        }
    }

    #[inline(always)]
    fn row(&self, row: usize) -> &'a [T] {
        &self.values[row * self.stride..][..self.n_cols]
    }

    /// Computes out = left · block. The rows of `left` are as long as the block has rows.
    ///
    /// # Panics
    /// If the shapes do not match.
    pub fn times_rows(self, left: &[T], out: &mut [T]) {
        let n = left.len() / self.n_rows.max(1);
        assert_eq!(left.len(), n * self.n_rows, "`left` must consist of whole rows");
        assert_eq!(out.len(), n * self.n_cols, "`out` must have one row per row of `left`");
        T::times_rows(self, left, out);
    }

    /// Computes out = left · blockᵀ. The rows of `left` are as long as the block has columns.
    ///
    /// # Panics
    /// If the shapes do not match.
    pub fn transposed_times_rows(self, left: &[T], out: &mut [T]) {
        let n = left.len() / self.n_cols.max(1);
        assert_eq!(left.len(), n * self.n_cols, "`left` must consist of whole rows");
        assert_eq!(out.len(), n * self.n_rows, "`out` must have one row per row of `left`");
        T::transposed_times_rows(self, left, out);
    }
}

/// The number types for which the products of [`BlockRef`] are implemented.
pub trait BlockProducts: Float + AddAssign + Sum {
    /// See [`BlockRef::times_rows`].
    #[doc(hidden)]
    fn times_rows(block: BlockRef<'_, Self>, left: &[Self], out: &mut [Self]);

    /// See [`BlockRef::transposed_times_rows`].
    #[doc(hidden)]
    fn transposed_times_rows(block: BlockRef<'_, Self>, left: &[Self], out: &mut [Self]);
}

impl BlockProducts for f32 {
    fn times_rows(block: BlockRef<'_, f32>, left: &[f32], out: &mut [f32]) {
        pulp::Arch::new().dispatch(TimesRows { block, left, out });
    }

    fn transposed_times_rows(block: BlockRef<'_, f32>, left: &[f32], out: &mut [f32]) {
        pulp::Arch::new().dispatch(TransposedTimesRows { block, left, out });
    }
}

impl BlockProducts for f64 {
    fn times_rows(block: BlockRef<'_, f64>, left: &[f64], out: &mut [f64]) {
        times_rows(block, left, out);
    }

    fn transposed_times_rows(block: BlockRef<'_, f64>, left: &[f64], out: &mut [f64]) {
        transposed_times_rows(block, left, out);
    }
}

/// [`BlockRef::times_rows`] by its definition.
fn times_rows<T: BlockProducts>(block: BlockRef<'_, T>, left: &[T], out: &mut [T]) {
    out.fill(T::zero());
    let rows =
        left.chunks_exact(block.n_rows.max(1)).zip(out.chunks_exact_mut(block.n_cols.max(1)));
    for (left, out) in rows {
        for (i, &factor) in left.iter().enumerate() {
            out.iter_mut().zip(block.row(i)).for_each(|(out, &value)| *out += factor * value);
        }
    }
}

/// [`BlockRef::transposed_times_rows`] by its definition.
fn transposed_times_rows<T: BlockProducts>(block: BlockRef<'_, T>, left: &[T], out: &mut [T]) {
    let rows =
        left.chunks_exact(block.n_cols.max(1)).zip(out.chunks_exact_mut(block.n_rows.max(1)));
    for (left, out) in rows {
        for (i, out) in out.iter_mut().enumerate() {
            *out = left.iter().zip(block.row(i)).map(|(&a, &b)| a * b).sum();
        }
    }
}

/// [`BlockRef::times_rows`] in vectors of single precision. Several rows share every number of the block that is read.
struct TimesRows<'a> {
    block: BlockRef<'a, f32>,
    left: &'a [f32],
    out: &'a mut [f32],
}

impl WithSimd for TimesRows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let n = self.left.len() / self.block.n_rows.max(1);
        let mut first = 0;
        while first < n {
            // The sums of a tile fill the vector registers.
            first += match n - first {
                1 => self.rows::<S, 1, 8>(simd, first),
                2 | 3 => self.rows::<S, 2, 4>(simd, first),
                _ => self.rows::<S, 4, 3>(simd, first),
            };
        }
    }
}

impl TimesRows<'_> {
    /// Multiplies the M rows from `first` on, W vectors of columns at a time, and returns M.
    #[inline(always)]
    fn rows<S: Simd, const M: usize, const W: usize>(&mut self, simd: S, first: usize) -> usize {
        let n_vectors = self.block.n_cols / S::F32_LANES;
        let mut vector = 0;
        while vector + W <= n_vectors {
            self.tile::<S, M, W>(simd, first, vector);
            vector += W;
        }
        while vector < n_vectors {
            self.tile::<S, M, 1>(simd, first, vector);
            vector += 1;
        }
        for row in first..first + M {
            for col in n_vectors * S::F32_LANES..self.block.n_cols {
                let left = &self.left[row * self.block.n_rows..(row + 1) * self.block.n_rows];
                let entries = left.iter().enumerate().map(|(i, &a)| a * self.block.row(i)[col]);
                self.out[row * self.block.n_cols + col] = entries.sum();
            }
        }
        M
    }

    #[expect(clippy::needless_range_loop, reason = "indices of both factors are clearer")]
    #[inline(always)]
    fn tile<S: Simd, const M: usize, const W: usize>(
        &mut self,
        simd: S,
        first: usize,
        vector: usize,
    ) {
        let (n_rows, n_cols) = (self.block.n_rows, self.block.n_cols);
        let cols = vector * S::F32_LANES..(vector + W) * S::F32_LANES;
        let left: [&[f32]; M] = std::array::from_fn(
            #[inline(always)]
            |m| &self.left[(first + m) * n_rows..][..n_rows],
        );
        let mut sums = [[simd.splat_f32s(TINY); W]; M];
        for i in 0..n_rows {
            let (row, _) = S::as_simd_f32s(&self.block.row(i)[cols.clone()]);
            let row: &[S::f32s; W] = row.try_into().expect("W vectors");
            for m in 0..M {
                let factor = simd.splat_f32s(left[m][i]);
                for w in 0..W {
                    sums[m][w] = simd.mul_add_e_f32s(factor, row[w], sums[m][w]);
                }
            }
        }
        for (m, sums) in sums.iter().enumerate() {
            let out = &mut self.out[(first + m) * n_cols..][cols.clone()];
            for (out, &sum) in S::as_mut_simd_f32s(out).0.iter_mut().zip(sums) {
                let is_dust = simd.less_than_f32s(simd.abs_f32s(sum), simd.splat_f32s(DUST));
                *out = simd.select_f32s(is_dust, simd.splat_f32s(0.0), sum);
            }
        }
    }
}

/// [`BlockRef::transposed_times_rows`] in vectors of single precision.
struct TransposedTimesRows<'a> {
    block: BlockRef<'a, f32>,
    left: &'a [f32],
    out: &'a mut [f32],
}

impl WithSimd for TransposedTimesRows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let n = self.left.len() / self.block.n_cols.max(1);
        let mut first = 0;
        while first < n {
            first += match n - first {
                1 => self.rows::<S, 1, 4>(simd, first),
                2 | 3 => self.rows::<S, 2, 4>(simd, first),
                _ => self.rows::<S, 4, 2>(simd, first),
            };
        }
    }
}

impl TransposedTimesRows<'_> {
    /// Multiplies the M rows from `first` on, R rows of the block at a time, and returns M.
    #[inline(always)]
    fn rows<S: Simd, const M: usize, const R: usize>(&mut self, simd: S, first: usize) -> usize {
        let mut row = 0;
        while row + R <= self.block.n_rows {
            self.dots::<S, M, R>(simd, first, row);
            row += R;
        }
        while row < self.block.n_rows {
            self.dots::<S, M, 1>(simd, first, row);
            row += 1;
        }
        M
    }

    /// Multiplies M rows by the R rows of the block from `row` on.
    #[inline(always)]
    fn dots<S: Simd, const M: usize, const R: usize>(&mut self, simd: S, first: usize, row: usize) {
        let (n_rows, n_cols) = (self.block.n_rows, self.block.n_cols);
        let left: [(&[S::f32s], &[f32]); M] = std::array::from_fn(
            #[inline(always)]
            |m| S::as_simd_f32s(&self.left[(first + m) * n_cols..][..n_cols]),
        );
        let rows: [(&[S::f32s], &[f32]); R] = std::array::from_fn(
            #[inline(always)]
            |r| S::as_simd_f32s(self.block.row(row + r)),
        );
        let mut sums = [[simd.splat_f32s(TINY); R]; M];
        for j in 0..n_cols / S::F32_LANES {
            for m in 0..M {
                for r in 0..R {
                    sums[m][r] = simd.mul_add_e_f32s(left[m].0[j], rows[r].0[j], sums[m][r]);
                }
            }
        }
        for m in 0..M {
            for r in 0..R {
                let rest = left[m].1.iter().zip(rows[r].1).map(|(&a, &b)| a * b);
                let sum = simd.reduce_sum_f32s(sums[m][r]) + rest.sum::<f32>();
                self.out[(first + m) * n_rows + row + r] = if sum.abs() < DUST { 0.0 } else { sum };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Real, Rng};

    fn numbers<T: Real>(n: usize, rng: &mut Rng) -> Vec<T> {
        (0..n).map(|_| T::of(rng.uniform() - 0.5)).collect()
    }

    fn check<T: Real>(tolerance: f64) {
        let mut rng = Rng::new(1);
        for n in 0..8 {
            for (n_rows, n_cols) in [(1, 1), (3, 70), (40, 5), (16, 64), (37, 131), (0, 3), (3, 0)]
            {
                let (stride, row, col) = (n_cols + 3, 2, 1);
                let matrix = numbers::<T>((n_rows + 4) * stride, &mut rng);
                let block = BlockRef::new(&matrix, stride, row..row + n_rows, col..col + n_cols);
                let entry = |i: usize, j: usize| matrix[(row + i) * stride + col + j].wide();
                let (left, wide) =
                    (numbers::<T>(n * n_rows, &mut rng), numbers::<T>(n * n_cols, &mut rng));
                let n = if n_rows * n_cols == 0 { 0 } else { n };
                let (left, wide) = (&left[..n * n_rows], &wide[..n * n_cols]);
                let (mut out, mut back) = (vec![T::one(); n * n_cols], vec![T::one(); n * n_rows]);
                block.times_rows(left, &mut out);
                block.transposed_times_rows(wide, &mut back);
                for m in 0..n {
                    for j in 0..n_cols {
                        let terms = (0..n_rows).map(|i| left[m * n_rows + i].wide() * entry(i, j));
                        assert!(
                            (out[m * n_cols + j].wide() - terms.sum::<f64>()).abs() < tolerance
                        );
                    }
                    for i in 0..n_rows {
                        let terms = (0..n_cols).map(|j| wide[m * n_cols + j].wide() * entry(i, j));
                        assert!(
                            (back[m * n_rows + i].wide() - terms.sum::<f64>()).abs() < tolerance
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn products_agree_with_the_definition() {
        check::<f64>(1e-14);
        check::<f32>(1e-5);
    }
}
