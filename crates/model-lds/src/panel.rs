//! Tall matrices, a row a word: stored row after row in the precision T, worked on in blocks of rows by
//! all threads. Sums over rows are in double precision from block to block, in an order that does not
//! depend on the threads.

use faer::linalg::matmul::{matmul, triangular};
use faer::{Accum, Mat, MatMut, MatRef, Par};
use latens_math::Real;
use rayon::prelude::*;
use std::ops::Range;

/// Rows begin at multiples of so many numbers, which are a whole number of vectors.
const ALIGN: usize = 16;

/// So many rows are summed up in the precision T before they go to a sum in double precision.
const SUMMED_ROWS: usize = 2048;

/// So many rows are worked on at once.
const BLOCK_ROWS: usize = 512;

/// Into so many parts a sum over rows is shared out.
const N_PARTS: usize = 32;

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
        let stride = n_cols.next_multiple_of(ALIGN);
        Panel { n_rows, n_cols, stride, values: vec![T::zero(); n_rows * stride] }
    }

    /// A matrix without space between its rows, so that it can be seen as one with shorter rows.
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

    pub(crate) fn view(&self) -> MatRef<'_, T> {
        view(&self.values, self.n_rows, self.n_cols, self.stride)
    }

    /// Some of the columns.
    pub(crate) fn columns(&self, range: Range<usize>) -> MatRef<'_, T> {
        self.view().subcols(range.start, range.len())
    }

    /// A compact matrix whose rows are cut into several rows of `n_cols` numbers.
    pub(crate) fn cut(&self, n_cols: usize) -> MatRef<'_, T> {
        assert!(
            self.stride == self.n_cols && self.n_cols.is_multiple_of(n_cols),
            "rows can be cut"
        );
        view(&self.values, self.values.len() / n_cols, n_cols, n_cols)
    }

    /// The rows one after the other, without what lies between them.
    pub(crate) fn to_rows(&self) -> Vec<T> {
        (0..self.n_rows).flat_map(|row| self.row(row)).copied().collect()
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
        let (stride, mut rest) = (self.stride, &mut self.values[..]);
        let mut cut = Vec::with_capacity(parts.len());
        for rows in parts {
            let (part, others) = rest.split_at_mut(rows.len() * stride);
            cut.push((rows.clone(), part));
            rest = others;
        }
        cut.into_par_iter()
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

    /// The product with a small matrix on the right, in place of it. A compact one is taken as one with
    /// as many columns as the small matrix has rows.
    pub(crate) fn times_in_place(&mut self, right: &Mat<f64>) {
        let (n_in, n_out) = (right.nrows(), right.ncols());
        assert_eq!(n_in, n_out, "the same shape again");
        let stride = if self.n_cols == n_in { self.stride } else { n_in };
        assert_eq!(self.values.len() % stride, 0, "whole rows");
        let right = Factor::<T>::new(right.as_ref());
        self.values.par_chunks_mut(BLOCK_ROWS * stride).for_each(|block| {
            let copy = block.to_vec();
            let n_rows = block.len() / stride;
            let out = view_mut(block, n_rows, n_in, stride);
            let copy = view(&copy, n_rows, n_in, stride);
            matmul(out, Accum::Replace, copy, right.view(), T::one(), Par::Seq);
        });
    }
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
        matmul(out, Accum::Replace, left, right.view(), T::one(), Par::Seq);
    });
    out
}

/// leftᵀ · right of two tall matrices.
pub(crate) fn cross<T: Real>(left: MatRef<'_, T>, right: MatRef<'_, T>) -> Mat<f64> {
    assert_eq!(left.nrows(), right.nrows(), "the same rows");
    let parts: Vec<Sum<T>> = parts(left.nrows())
        .into_par_iter()
        .map(|rows| {
            let mut sum = Sum::new(left.ncols(), right.ncols());
            for (first, n_rows) in blocks(rows) {
                sum.add(left.subrows(first, n_rows), right.subrows(first, n_rows));
            }
            sum
        })
        .collect();
    if parts.is_empty() {
        return Mat::zeros(left.ncols(), right.ncols());
    }
    total(&parts, 0..right.ncols())
}

/// Xᵀ · X of a tall matrix: half the work of [`cross`].
pub(crate) fn gram<T: Real>(x: MatRef<'_, T>) -> Mat<f64> {
    let n = x.ncols();
    let parts: Vec<Sum<T>> = parts(x.nrows())
        .into_par_iter()
        .map(|rows| {
            let mut sum = Sum::new(n, n);
            blocks(rows).for_each(|(first, n_rows)| sum.add_square(x.subrows(first, n_rows)));
            sum
        })
        .collect();
    if parts.is_empty() {
        return Mat::zeros(n, n);
    }
    let half = total(&parts, 0..n);
    Mat::from_fn(n, n, |i, j| if i >= j { half[(i, j)] } else { half[(j, i)] })
}

fn parts(n_rows: usize) -> Vec<Range<usize>> {
    let length = n_rows.div_ceil(N_PARTS).max(BLOCK_ROWS);
    (0..n_rows).step_by(length).map(|first| first..(first + length).min(n_rows)).collect()
}

/// The first of each block of rows, and how many it has.
fn blocks(rows: Range<usize>) -> impl Iterator<Item = (usize, usize)> {
    rows.clone().step_by(BLOCK_ROWS).map(move |first| (first, BLOCK_ROWS.min(rows.end - first)))
}

/// Some columns of the sum of sums, which are added in their order.
pub(crate) fn total<T: Real>(parts: &[Sum<T>], columns: Range<usize>) -> Mat<f64> {
    let mut total = Mat::zeros(parts[0].block.nrows(), columns.len());
    for part in parts {
        if let Some(wide) = &part.wide {
            total += wide.as_ref().subcols(columns.start, columns.len());
        }
        for (j, column) in columns.clone().enumerate() {
            add_wide(total.col_as_slice_mut(j), part.block.col_as_slice(column));
        }
    }
    total
}

fn add_wide<T: Real>(sum: &mut [f64], values: &[T]) {
    sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value.wide());
}

/// Σ leftᵀ · right over blocks of rows: in the precision T over a number of rows, in double precision beyond.
pub(crate) struct Sum<T> {
    block: Mat<T>,
    n_rows: usize,
    wide: Option<Mat<f64>>,
}

impl<T: Real> Sum<T> {
    pub(crate) fn new(n_rows: usize, n_cols: usize) -> Sum<T> {
        Sum { block: Mat::zeros(n_rows, n_cols), n_rows: 0, wide: None }
    }

    pub(crate) fn add(&mut self, left: MatRef<'_, T>, right: MatRef<'_, T>) {
        let accum = self.make_room(left.nrows());
        matmul(self.block.as_mut(), accum, left.transpose(), right, T::one(), Par::Seq);
    }

    /// The same for one matrix with itself, of which the lower half is enough.
    fn add_square(&mut self, x: MatRef<'_, T>) {
        use triangular::BlockStructure::{Rectangular, TriangularLower};
        let accum = self.make_room(x.nrows());
        let out = self.block.as_mut();
        let left = x.transpose();
        let one = T::one();
        triangular::matmul(
            out,
            TriangularLower,
            accum,
            left,
            Rectangular,
            x,
            Rectangular,
            one,
            Par::Seq,
        );
    }

    /// Counts rows that are to be added, and says how.
    fn make_room(&mut self, n_rows: usize) -> Accum {
        if self.n_rows > 0 && self.n_rows + n_rows > SUMMED_ROWS {
            let (n, m) = (self.block.nrows(), self.block.ncols());
            let wide = self.wide.get_or_insert_with(|| Mat::zeros(n, m));
            for j in 0..m {
                add_wide(wide.col_as_slice_mut(j), self.block.col_as_slice(j));
            }
            self.n_rows = 0;
        }
        let accum = if self.n_rows == 0 { Accum::Replace } else { Accum::Add };
        self.n_rows += n_rows;
        accum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_math::Rng;

    fn random<T: Real>(n_rows: usize, n_cols: usize, rng: &mut Rng) -> Panel<T> {
        let values: Vec<T> = (0..n_rows * n_cols).map(|_| T::of(rng.normal())).collect();
        Panel::from_rows(n_rows, n_cols, &values)
    }

    fn entry<T: Real>(panel: &Panel<T>, i: usize, j: usize) -> f64 {
        panel.row(i)[j].wide()
    }

    fn check<T: Real>(tolerance: f64) {
        let mut rng = Rng::new(1);
        for (n_rows, n, m) in [(1, 1, 1), (8, 2, 2), (8, 96, 2), (1500, 5, 17), (70_000, 3, 2)] {
            let (a, b) = (random::<T>(n_rows, n, &mut rng), random::<T>(n_rows, m, &mut rng));
            let between = cross(a.view(), b.view());
            let own = gram(a.view());
            let rough = tolerance * 40.0 * (1.0 + n_rows as f64 / 1000.0);
            let right = Mat::from_fn(n, m, |_, _| rng.normal());
            let wide = times(a.view(), &right);
            for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let sum: f64 = (0..n_rows).map(|k| entry(&a, k, i) * entry(&a, k, j)).sum();
                assert!((own[(i, j)] - sum).abs() < 2.0 * rough, "{n_rows} {n}: {i} {j}");
            }
            for j in 0..m {
                for i in 0..n {
                    let sum: f64 = (0..n_rows).map(|k| entry(&a, k, i) * entry(&b, k, j)).sum();
                    let error = (between[(i, j)] - sum).abs();
                    assert!(error < rough, "{n_rows} {n} {m}");
                }
                for i in 0..n_rows {
                    let sum: f64 = (0..n).map(|k| entry(&a, i, k) * right[(k, j)]).sum();
                    assert!((entry(&wide, i, j) - sum).abs() < tolerance, "{n_rows} {n} {m}: {j}");
                }
            }
        }
    }

    #[test]
    fn products_are_their_definition() {
        check::<f64>(1e-13);
        check::<f32>(3e-5);
    }
}
