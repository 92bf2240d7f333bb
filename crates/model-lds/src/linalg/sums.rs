//! Sums over the rows of tall matrices: leftᵀ · right.
//!
//! Blocks are summed in double precision, in an order that does not depend on the number of threads.

use latens_math::Real;
use latens_math::linalg::{Accum, Mat, MatRef, matmul, matmul_lower};
use rayon::prelude::*;
use std::ops::Range;

/// Number of rows summed in the precision T before the sum moves to double precision.
const SUMMED_ROWS: usize = 2048;

/// Number of rows added at once.
const BLOCK_ROWS: usize = 512;

/// Number of parts of a parallel sum over rows.
pub(crate) const N_PARTS: usize = 32;

/// leftᵀ · right of two tall matrices.
pub(crate) fn cross<T: Real>(left: MatRef<'_, T>, right: MatRef<'_, T>) -> Mat<f64> {
    assert_eq!(left.nrows(), right.nrows(), "both matrices must have the same number of rows");
    let parts: Vec<Accumulator<T>> = parts(left.nrows())
        .into_par_iter()
        .map(|rows| {
            let mut sum = Accumulator::new(left.ncols(), right.ncols());
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

/// Xᵀ · X of a tall matrix, at half the cost of [`cross`].
pub(crate) fn gram<T: Real>(x: MatRef<'_, T>) -> Mat<f64> {
    let n = x.ncols();
    let parts: Vec<Accumulator<T>> = parts(x.nrows())
        .into_par_iter()
        .map(|rows| {
            let mut sum = Accumulator::new(n, n);
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

/// The first row and the number of rows of each block.
fn blocks(rows: Range<usize>) -> impl Iterator<Item = (usize, usize)> {
    rows.clone().step_by(BLOCK_ROWS).map(move |first| (first, BLOCK_ROWS.min(rows.end - first)))
}

/// Some columns of the total of several partial sums, added in order.
pub(crate) fn total<T: Real>(parts: &[Accumulator<T>], columns: Range<usize>) -> Mat<f64> {
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

/// Accumulates Σ leftᵀ · right over blocks of rows: up to [`SUMMED_ROWS`] rows in the precision T, the rest in double
/// precision.
pub(crate) struct Accumulator<T> {
    block: Mat<T>,
    n_rows: usize,
    wide: Option<Mat<f64>>,
}

impl<T: Real> Accumulator<T> {
    pub(crate) fn new(n_rows: usize, n_cols: usize) -> Accumulator<T> {
        Accumulator { block: Mat::zeros(n_rows, n_cols), n_rows: 0, wide: None }
    }

    /// Starts a new sum. It may use fewer columns; the values of the others are then unspecified.
    pub(crate) fn restart(&mut self) {
        self.n_rows = 0;
        self.wide = None;
    }

    pub(crate) fn add(&mut self, left: MatRef<'_, T>, right: MatRef<'_, T>) {
        let accum = self.make_room(left.nrows());
        let out = self.block.as_mut().subcols_mut(0, right.ncols());
        matmul(out, accum, left.transpose(), right);
    }

    /// Adds Xᵀ · X, the lower triangle only.
    pub(crate) fn add_square(&mut self, x: MatRef<'_, T>) {
        let accum = self.make_room(x.nrows());
        matmul_lower(self.block.as_mut(), accum, x.transpose(), x);
    }

    /// Moves a full block to double precision, and returns whether the next rows replace the block or are added to it.
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
    use crate::linalg::panel::{Panel, times};
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
    fn cross_and_gram_agree_with_their_definition() {
        check::<f64>(1e-13);
        check::<f32>(3e-5);
    }
}
