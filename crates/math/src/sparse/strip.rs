//! Products of a sparse matrix with a dense one that is cut into strips of columns, so that frequently read rows of a
//! strip stay in the cache of a core.

use super::Csr;
use num_traits::Float;
use pulp::{Simd, WithSimd};
use rayon::prelude::*;
use std::ops::{AddAssign, Range};

/// Maximum number of columns. 8,000 rows of such a strip take 2 MiB in single precision, and the sums of a row fit into
/// registers.
const WIDEST: usize = 64;

/// Strips begin at multiples of this number of columns, which is one cache line, or of half of it, which is one
/// vector, depending on the maximum width.
const UNIT: usize = 16;

/// Alignment of the first row in bytes: one cache line.
const ALIGN: usize = 64;

/// Minimum number of rows that a task copies.
const COPIED_ROWS: usize = 512;

/// A range of columns of a dense matrix, in row-major order.
#[derive(Debug)]
pub struct Strip<T> {
    n_rows: usize,
    width: usize,
    values: Vec<T>,
    /// Index of the first value that is aligned to a cache line.
    start: usize,
}

impl<T: StripProducts> Strip<T> {
    /// Recommended maximum width; wider strips are slow.
    pub const WIDEST: usize = WIDEST;

    /// Returns the ascending column ranges of strips that are about equally wide and have at most `widest` columns.
    ///
    /// # Panics
    /// If `widest` is not a positive multiple of 8.
    pub fn ranges(n_cols: usize, widest: usize) -> Vec<Range<usize>> {
        assert!(
            widest > 0 && widest.is_multiple_of(UNIT / 2),
            "`widest` must be a positive multiple of 8"
        );
        let unit = if widest.is_multiple_of(UNIT) { UNIT } else { UNIT / 2 };
        let (n_units, n) = (n_cols.div_ceil(unit), n_cols.div_ceil(widest));
        let bound = |i: usize| (n_units * i / n * unit).min(n_cols);
        (0..n).map(|i| bound(i)..bound(i + 1)).collect()
    }

    /// Creates a strip of zeros.
    ///
    /// # Panics
    /// If `width` is 0.
    pub fn zeros(n_rows: usize, width: usize) -> Strip<T> {
        assert!(width > 0, "a strip needs at least one column");
        let values = vec![T::zero(); n_rows * width + ALIGN / size_of::<T>()];
        let start = values.as_ptr().align_offset(ALIGN).min(ALIGN / size_of::<T>());
        Strip { n_rows, width, values, start }
    }

    /// Copies a range of columns of a row-major matrix into the strip on all threads. The width changes as in
    /// [`Strip::set_width`].
    ///
    /// # Panics
    /// If the columns exceed the capacity of the strip, or the shape of the matrix does not match.
    pub fn copy_columns(&mut self, values: &[T], n_cols: usize, columns: Range<usize>) {
        assert_eq!(values.len(), self.n_rows * n_cols, "matrix and strip must have the same rows");
        self.set_width(columns.len());
        let (width, rows) = (self.width, values.par_chunks_exact(n_cols));
        let copies = self.values_mut().par_chunks_exact_mut(width).zip(rows);
        copies
            .with_min_len(COPIED_ROWS)
            .for_each(|(out, row)| out.copy_from_slice(&row[columns.clone()]));
    }

    /// Changes the width, which must not exceed that of the allocation. The values are unspecified afterwards.
    ///
    /// # Panics
    /// If `width` is 0 or exceeds the width of the allocation.
    pub fn set_width(&mut self, width: usize) {
        let room = self.values.len() - ALIGN / size_of::<T>();
        assert!(
            width > 0 && self.n_rows * width <= room,
            "the width exceeds that of the allocation"
        );
        self.width = width;
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Values in row-major order.
    pub fn values(&self) -> &[T] {
        &self.values[self.start..][..self.n_rows * self.width]
    }

    /// Mutable values in row-major order.
    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.values[self.start..][..self.n_rows * self.width]
    }

    /// Computes out += S X for a range of rows of a sparse matrix S and this strip X. Row i of `out` starts at
    /// `i * stride`.
    ///
    /// # Panics
    /// If the shapes do not match.
    pub fn add_product(
        &self,
        (sparse, rows): (&Csr<T>, Range<usize>),
        out: &mut [T],
        stride: usize,
    ) {
        assert_eq!(
            sparse.n_cols(),
            self.n_rows,
            "the strip must have one row per column of the sparse matrix"
        );
        let (matrix, width) = (self.values(), self.width);
        T::add_strip_product(SparseProduct { sparse, rows, matrix, width, out, stride });
    }
}

/// The number types for which [`Strip::add_product`] is implemented.
pub trait StripProducts: Float + AddAssign + Send + Sync {
    /// See [`Strip::add_product`].
    #[doc(hidden)]
    fn add_strip_product(product: SparseProduct<'_, Self>);
}

impl StripProducts for f32 {
    fn add_strip_product(product: SparseProduct<'_, f32>) {
        pulp::Arch::new().dispatch(product);
    }
}

impl StripProducts for f64 {
    fn add_strip_product(product: SparseProduct<'_, f64>) {
        product.add();
    }
}

/// The arguments of [`Strip::add_product`].
#[derive(Debug)]
pub struct SparseProduct<'a, T> {
    sparse: &'a Csr<T>,
    rows: Range<usize>,
    matrix: &'a [T],
    width: usize,
    out: &'a mut [T],
    stride: usize,
}

impl<T: StripProducts> SparseProduct<'_, T> {
    /// Computes the product by its definition.
    fn add(self) {
        for (i, row) in self.rows.enumerate() {
            let out = &mut self.out[i * self.stride..][..self.width];
            let (columns, values) = self.sparse.row(row);
            for (&column, &weight) in columns.iter().zip(values) {
                let row = &self.matrix[column as usize * self.width..][..self.width];
                out.iter_mut().zip(row).for_each(|(out, &value)| *out += weight * value);
            }
        }
    }
}

impl WithSimd for SparseProduct<'_, f32> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        if !self.width.is_multiple_of(S::F32_LANES) {
            return self.add();
        }
        match self.width / S::F32_LANES {
            1 => self.add_vectors::<S, 1>(simd),
            2 => self.add_vectors::<S, 2>(simd),
            3 => self.add_vectors::<S, 3>(simd),
            4 => self.add_vectors::<S, 4>(simd),
            5 => self.add_vectors::<S, 5>(simd),
            6 => self.add_vectors::<S, 6>(simd),
            7 => self.add_vectors::<S, 7>(simd),
            8 => self.add_vectors::<S, 8>(simd),
            10 => self.add_vectors::<S, 10>(simd),
            12 => self.add_vectors::<S, 12>(simd),
            14 => self.add_vectors::<S, 14>(simd),
            16 => self.add_vectors::<S, 16>(simd),
            _ => self.add(),
        }
    }
}

impl SparseProduct<'_, f32> {
    /// Keeps the N vectors of sums of a row in registers while reading the rows of the matrix.
    #[inline(always)]
    fn add_vectors<S: Simd, const N: usize>(self, simd: S) {
        let matrix: &[[S::f32s; N]] = S::as_simd_f32s(self.matrix).0.as_chunks().0;
        for (i, row) in self.rows.enumerate() {
            let out = &mut self.out[i * self.stride..][..N * S::F32_LANES];
            let out: &mut [S::f32s; N] =
                S::as_mut_simd_f32s(out).0.try_into().expect("a row of N vectors");
            let (columns, values) = self.sparse.row(row);
            let mut sums = *out;
            for (&column, &weight) in columns.iter().zip(values) {
                let row = &matrix[column as usize];
                let weight = simd.splat_f32s(weight);
                for n in 0..N {
                    sums[n] = simd.mul_add_e_f32s(weight, row[n], sums[n]);
                }
            }
            *out = sums;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Real, Rng};

    fn check<T: Real>(tolerance: f64) {
        let mut rng = Rng::new(1);
        let mut number = || T::of(rng.uniform() - 0.5);
        let (offsets, columns) = (vec![0, 2, 2, 5], vec![1, 3, 0, 2, 3]);
        let sparse: Vec<T> = columns.iter().map(|_| number()).collect();
        let sparse = Csr::new(4, offsets, columns, sparse).unwrap();
        for (n_cols, widest) in
            [(1, 8), (16, 8), (17, 16), (48, 64), (100, 48), (120, 40), (208, 64), (224, 56)]
        {
            let dense: Vec<T> = (0..4 * n_cols).map(|_| number()).collect();
            let start: Vec<T> = (0..3 * (n_cols + 3)).map(|_| number()).collect();
            for rows in [0..3, 1..3] {
                let mut out = start.clone();
                let mut strip = Strip::zeros(4, n_cols);
                for columns in Strip::<T>::ranges(n_cols, widest) {
                    strip.copy_columns(&dense, n_cols, columns.clone());
                    assert_eq!(strip.width(), columns.len());
                    let out = &mut out[columns.start..];
                    strip.add_product((&sparse, rows.clone()), out, n_cols + 3);
                }
                for (i, out) in out.iter().enumerate() {
                    let (row, j) = (i / (n_cols + 3), i % (n_cols + 3));
                    let is_product = row < rows.len() && j < n_cols;
                    let (columns, values) =
                        sparse.row(if is_product { rows.start + row } else { 1 });
                    let entry = |column: u32| dense[column as usize * n_cols + j].wide();
                    let sum: f64 =
                        columns.iter().zip(values).map(|(&k, value)| value.wide() * entry(k)).sum();
                    assert!(
                        (out.wide() - start[i].wide() - sum).abs() < tolerance,
                        "{n_cols}: {i}"
                    );
                }
            }
        }
    }

    #[test]
    fn products_agree_with_the_definition() {
        check::<f64>(1e-15);
        check::<f32>(1e-6);
    }

    #[test]
    fn ranges_respect_the_maximum_width() {
        let widths = |n_cols, widest| {
            let ranges = Strip::<f32>::ranges(n_cols, widest);
            ranges.iter().map(|range| range.len()).collect::<Vec<_>>()
        };
        assert_eq!(widths(208, 64), [48, 48, 48, 64]);
        assert_eq!(widths(224, 64), [48, 64, 48, 64]);
        assert_eq!(widths(224, 56), [56; 4]);
        assert_eq!(widths(112, 24), [16, 24, 24, 24, 24]);
        assert_eq!(widths(70, 64), [32, 38]);
        assert_eq!(widths(5, 8), [5]);
    }

    #[test]
    #[should_panic(expected = "the strip must have one row per column of the sparse matrix")]
    fn shapes_that_do_not_match_panic() {
        let sparse = Csr::new(2, vec![0, 1], vec![1], vec![1.0]).unwrap();
        Strip::zeros(3, 1).add_product((&sparse, 0..1), &mut [0.0], 1);
    }
}
