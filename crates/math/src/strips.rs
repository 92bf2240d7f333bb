//! Sparse times dense: the dense matrix is cut into strips of columns, so that the rows of a strip that are asked
//! for again and again stay in a core's own cache.

use crate::{Csr, Real};
use pulp::{Simd, WithSimd};
use std::ops::Range;

/// How wide a strip is at most. So 8,000 rows of one take 2 MiB of single precision, where 2,500 whole rows of 200
/// numbers would; and its sums fit into registers.
const WIDEST: usize = 64;

/// Strips begin at multiples of so many columns, which are a whole number of vectors.
const UNIT: usize = 16;

/// Rows begin with a line of the cache.
const ALIGN: usize = 64;

/// A dense matrix, strip after strip, each of them row after row.
#[derive(Debug)]
pub struct Strips<T> {
    n_rows: usize,
    strips: Vec<Range<usize>>,
    values: Vec<T>,
    /// Where the first line of the cache begins among the values.
    start: usize,
}

impl<T: Real> Strips<T> {
    /// A copy of a row-major matrix, the columns of which are `n_blocks` blocks of the same width: no strip has
    /// columns of two blocks.
    ///
    /// # Panics
    /// If there are no such rows or blocks.
    pub fn new(values: &[T], n_cols: usize, n_blocks: usize) -> Strips<T> {
        assert!(n_cols > 0 && n_blocks > 0, "there are columns");
        assert!(values.len().is_multiple_of(n_cols), "whole rows");
        assert!(n_cols.is_multiple_of(n_blocks), "whole blocks");
        let width = n_cols / n_blocks;
        let cut = (0..n_blocks).flat_map(|block| strips(block * width..(block + 1) * width));
        let mut storage = vec![T::zero(); values.len() + ALIGN / size_of::<T>()];
        let start = storage.as_ptr().align_offset(ALIGN).min(ALIGN / size_of::<T>());
        let strips: Vec<_> = cut.collect();
        let mut rest = &mut storage[start..];
        for strip in &strips {
            for row in values.chunks_exact(n_cols) {
                let (out, others) = rest.split_at_mut(strip.len());
                out.copy_from_slice(&row[strip.clone()]);
                rest = others;
            }
        }
        Strips { n_rows: values.len() / n_cols, strips, values: storage, start }
    }

    /// The columns of each strip, ascending.
    pub fn ranges(&self) -> &[Range<usize>] {
        &self.strips
    }

    /// out += S X for some rows of a sparse matrix S and one strip of X, where the rows of `out` begin at
    /// multiples of `stride`.
    ///
    /// # Panics
    /// If the matrices do not fit together, or there is no such strip.
    pub fn add_product(
        &self,
        strip: usize,
        (sparse, rows): (&Csr<T>, Range<usize>),
        out: &mut [T],
        stride: usize,
    ) {
        assert_eq!(sparse.n_cols(), self.n_rows, "a row for each column");
        let columns = &self.strips[strip];
        let n = self.n_rows;
        let matrix = &self.values[self.start + columns.start * n..][..columns.len() * n];
        let product = SparseProduct { sparse, rows, matrix, width: columns.len(), out, stride };
        T::add_sparse_product(product);
    }
}

/// Strips of about the same width for some columns.
fn strips(columns: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let n_units = columns.len().div_ceil(UNIT);
    let n = columns.len().div_ceil(WIDEST);
    let bound = move |i: usize| (columns.start + n_units * i / n * UNIT).min(columns.end);
    (0..n).map(move |i| bound(i)..bound(i + 1))
}

/// [`Strips::add_product`] as a task for vectors of any length.
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
            6 => self.add_vectors::<S, 6>(simd),
            8 => self.add_vectors::<S, 8>(simd),
            12 => self.add_vectors::<S, 12>(simd),
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
        for (width, n_blocks) in [(1, 1), (16, 2), (17, 3), (48, 1), (100, 2), (208, 1), (224, 4)] {
            let n_cols = width * n_blocks;
            let dense: Vec<T> = (0..4 * n_cols).map(|_| number()).collect();
            let start: Vec<T> = (0..3 * (n_cols + 3)).map(|_| number()).collect();
            let strips = Strips::new(&dense, n_cols, n_blocks);
            for rows in [0..3, 1..3] {
                let mut out = start.clone();
                for (strip, columns) in strips.ranges().iter().enumerate() {
                    let out = &mut out[columns.start..];
                    strips.add_product(strip, (&sparse, rows.clone()), out, n_cols + 3);
                }
                for (i, out) in out.iter().enumerate() {
                    let (row, j) = (i / (n_cols + 3), i % (n_cols + 3));
                    let is_product = row < rows.len() && j < n_cols;
                    let (columns, values) =
                        sparse.row(if is_product { rows.start + row } else { 1 });
                    let entry = |column: u32| dense[column as usize * n_cols + j].wide();
                    let sum: f64 =
                        columns.iter().zip(values).map(|(&k, value)| value.wide() * entry(k)).sum();
                    assert!((out.wide() - start[i].wide() - sum).abs() < tolerance, "{width}: {i}");
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
    fn strips_are_narrow_and_in_one_block_each() {
        let widths = |n_cols: usize, n_blocks: usize| {
            let strips = Strips::new(&vec![0.0; n_cols], n_cols, n_blocks);
            strips.ranges().iter().map(|range| range.len()).collect::<Vec<_>>()
        };
        assert_eq!(widths(208, 1), [48, 48, 48, 64]);
        assert_eq!(widths(448, 2), [48, 64, 48, 64, 48, 64, 48, 64]);
        assert_eq!(widths(70, 1), [32, 38]);
        assert_eq!(widths(15, 3), [5, 5, 5]);
    }

    #[test]
    #[should_panic(expected = "a row for each column")]
    fn matrices_that_do_not_fit_are_refused() {
        let sparse = Csr::new(2, vec![0, 1], vec![1], vec![1.0]).unwrap();
        Strips::new(&[1.0; 3], 1, 1).add_product(0, (&sparse, 0..1), &mut [0.0], 1);
    }
}
