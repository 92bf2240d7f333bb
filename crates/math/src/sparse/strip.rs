//! Sparse times dense: the dense matrix is cut into strips of columns, so that the rows of a strip that are asked
//! for again and again stay in a core's own cache.

use crate::{Csr, Real};
use pulp::{Simd, WithSimd};
use rayon::prelude::*;
use std::ops::Range;

/// So 8,000 rows of a strip take 2 MiB of single precision, where 2,500 whole rows of 200 numbers would; and its sums
/// fit into registers.
const WIDEST: usize = 64;

/// Strips begin at multiples of so many columns, which are whole lines of the cache, or of half as many, which are
/// whole vectors, where their widths ask for it.
const UNIT: usize = 16;

/// The first row begins with a line of the cache, as do all others where a row is whole lines.
const ALIGN: usize = 64;

/// A thread copies at least so many rows at a time.
const COPIED_ROWS: usize = 512;

/// Some columns of a dense matrix, row after row.
#[derive(Debug)]
pub struct Strip<T> {
    n_rows: usize,
    width: usize,
    values: Vec<T>,
    /// Where the first line of the cache begins among the values.
    start: usize,
}

impl<T: Real> Strip<T> {
    /// How wide a strip should be at most; wider ones are slow.
    pub const WIDEST: usize = WIDEST;

    /// The columns that each strip of a matrix should have: ascending, all of about the same number, and at most
    /// `widest`, a multiple of 8.
    ///
    /// # Panics
    /// If `widest` is not.
    pub fn ranges(n_cols: usize, widest: usize) -> Vec<Range<usize>> {
        assert!(widest > 0 && widest.is_multiple_of(UNIT / 2), "whole vectors");
        let unit = if widest.is_multiple_of(UNIT) { UNIT } else { UNIT / 2 };
        let (n_units, n) = (n_cols.div_ceil(unit), n_cols.div_ceil(widest));
        let bound = |i: usize| (n_units * i / n * unit).min(n_cols);
        (0..n).map(|i| bound(i)..bound(i + 1)).collect()
    }

    /// A strip of zeros.
    ///
    /// # Panics
    /// If it has no columns.
    pub fn zeros(n_rows: usize, width: usize) -> Strip<T> {
        assert!(width > 0, "there are columns");
        let values = vec![T::zero(); n_rows * width + ALIGN / size_of::<T>()];
        let start = values.as_ptr().align_offset(ALIGN).min(ALIGN / size_of::<T>());
        Strip { n_rows, width, values, start }
    }

    /// Copies some columns of a row-major matrix into it, with all threads; see [`Strip::set_width`].
    ///
    /// # Panics
    /// If there is no room, or the matrix has no such rows and columns.
    pub fn copy_columns(&mut self, values: &[T], n_cols: usize, columns: Range<usize>) {
        assert_eq!(values.len(), self.n_rows * n_cols, "the same rows");
        self.set_width(columns.len());
        let (width, rows) = (self.width, values.par_chunks_exact(n_cols));
        let copies = self.values_mut().par_chunks_exact_mut(width).zip(rows);
        copies
            .with_min_len(COPIED_ROWS)
            .for_each(|(out, row)| out.copy_from_slice(&row[columns.clone()]));
    }

    /// Makes room for another strip of the same rows, which must not be wider than this one was at first. What its
    /// numbers are is left open.
    ///
    /// # Panics
    /// If it is wider, or has no columns.
    pub fn set_width(&mut self, width: usize) {
        let room = self.values.len() - ALIGN / size_of::<T>();
        assert!(width > 0 && self.n_rows * width <= room, "there is room");
        self.width = width;
    }

    /// The number of columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Its numbers, row after row.
    pub fn values(&self) -> &[T] {
        &self.values[self.start..][..self.n_rows * self.width]
    }

    /// The same, to be changed.
    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.values[self.start..][..self.n_rows * self.width]
    }

    /// out += S X for some rows of a sparse matrix S and this strip X, where the rows of `out` begin at
    /// multiples of `stride`.
    ///
    /// # Panics
    /// If the matrices do not fit together.
    pub fn add_product(
        &self,
        (sparse, rows): (&Csr<T>, Range<usize>),
        out: &mut [T],
        stride: usize,
    ) {
        assert_eq!(sparse.n_cols(), self.n_rows, "a row for each column");
        let (matrix, width) = (self.values(), self.width);
        T::add_sparse_product(SparseProduct { sparse, rows, matrix, width, out, stride });
    }
}

/// [`Strip::add_product`] as a task for vectors of any length.
#[derive(Debug)]
pub struct SparseProduct<'a, T> {
    sparse: &'a Csr<T>,
    rows: Range<usize>,
    matrix: &'a [T],
    width: usize,
    out: &'a mut [T],
    stride: usize,
}

impl<T: Real> SparseProduct<'_, T> {
    /// The product by its definition.
    pub(crate) fn add(self) {
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
    /// The sums of a row are N vectors, which stay in registers while the rows of the matrix pass by.
    #[inline(always)]
    fn add_vectors<S: Simd, const N: usize>(self, simd: S) {
        let matrix: &[[S::f32s; N]] = S::as_simd_f32s(self.matrix).0.as_chunks().0;
        for (i, row) in self.rows.enumerate() {
            let out = &mut self.out[i * self.stride..][..N * S::F32_LANES];
            let out: &mut [S::f32s; N] =
                S::as_mut_simd_f32s(out).0.try_into().expect("N vectors of sums");
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
    use crate::Rng;

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
    fn products_are_their_definition() {
        check::<f64>(1e-15);
        check::<f32>(1e-6);
    }

    #[test]
    fn strips_are_narrow() {
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
    #[should_panic(expected = "a row for each column")]
    fn matrices_that_do_not_fit_are_refused() {
        let sparse = Csr::new(2, vec![0, 1], vec![1], vec![1.0]).unwrap();
        Strip::zeros(3, 1).add_product((&sparse, 0..1), &mut [0.0], 1);
    }
}
