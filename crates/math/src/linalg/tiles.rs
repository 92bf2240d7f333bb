//! Matrix products in tiles that threads share.

use super::registers::clear_upper_halves;
use crate::rows::for_each_chunk;
use faer::linalg::matmul::matmul;
use faer::traits::RealField;
use faer::{Accum, Mat, MatMut, MatRef, Par};

/// Number of rows of a tile, and of columns where there are few rows: enough for full speed, few enough that the
/// gradient of a 256 × 256 weight matrix is work for four threads.
const TILE: usize = 128;

/// Number of rows from which tiles are twice as wide, because there are enough of them.
const MANY_ROWS: usize = 1024;

/// Computes out = A B or out += A B on the threads of `par`; see [`multiply`](super::multiply).
pub(super) fn multiply<T: RealField + Copy>(
    out: MatMut<'_, T>,
    accum: Accum,
    a: MatRef<'_, T>,
    b: MatRef<'_, T>,
    par: Par,
) {
    let n_columns = if out.nrows() < MANY_ROWS { TILE } else { 2 * TILE };
    let collides = collides(a);
    for_each_chunk((out, a), TILE, par, |(out, a)| {
        for_each_chunk((out.transpose_mut(), b.transpose()), n_columns, par, |(out, b)| {
            let (out, b) = (out.transpose_mut(), b.transpose());
            if collides {
                return multiply_by_columns(out, accum, a, b);
            }
            matmul(out, accum, a, b, T::one_impl(), Par::Seq);
            clear_upper_halves();
        });
    });
}

/// Returns whether A is a transposed matrix whose rows are a multiple of 4 KiB apart. The entries of a row of A then
/// share a few sets of the L1 cache and evict each other.
fn collides<T>(a: MatRef<'_, T>) -> bool {
    const PERIOD: usize = 4096;
    let distance = a.col_stride().unsigned_abs() * size_of::<T>();
    a.row_stride() == 1 && distance > 0 && distance.is_multiple_of(PERIOD)
}

/// Computes the product through a column-major temporary, so that A is read in whole cache lines and reordered only
/// once. For an A that [`collides`] this is one and a half times as fast.
fn multiply_by_columns<T: RealField + Copy>(
    mut out: MatMut<'_, T>,
    accum: Accum,
    a: MatRef<'_, T>,
    b: MatRef<'_, T>,
) {
    let mut columns = Mat::<T>::zeros(out.nrows(), out.ncols());
    matmul(columns.as_mut(), Accum::Replace, a, b, T::one_impl(), Par::Seq);
    clear_upper_halves();
    match accum {
        Accum::Replace => out.copy_from(&columns),
        Accum::Add => out += &columns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(len: usize) -> Vec<f64> {
        (0..len).map(|i| (i * 37 % 101) as f64).collect()
    }

    /// Compares out = A B followed by out += A B with the definition; integers make every sum exact.
    fn check(a: MatRef<'_, f64>, b: MatRef<'_, f64>) {
        let (n, m) = (a.nrows(), b.ncols());
        let mut values = vec![7.0; n * m];
        let mut out = MatMut::from_row_major_slice_mut(&mut values, n, m);
        multiply(out.as_mut(), Accum::Replace, a, b, Par::Seq);
        multiply(out.as_mut(), Accum::Add, a, b, Par::rayon(0));
        for (i, j) in (0..n).flat_map(|i| (0..m).map(move |j| (i, j))) {
            let sum: f64 = (0..a.ncols()).map(|l| a[(i, l)] * b[(l, j)]).sum();
            assert_eq!(out[(i, j)], 2.0 * sum);
        }
    }

    #[test]
    fn tiles_make_up_the_product() {
        for (n, m, k) in [(1, 1, 1), (3, 300, 2), (257, 129, 10), (2, 3, 0), (0, 3, 2)] {
            let (a, b) = (numbers(n * k), numbers(k * m));
            check(MatRef::from_row_major_slice(&a, n, k), MatRef::from_row_major_slice(&b, k, m));
        }
    }

    #[test]
    fn rows_that_collide_make_the_same_product() {
        // 512 numbers of double precision are 4 KiB.
        let (n, m, k) = (512, 140, 3);
        let (a, b) = (numbers(k * n), numbers(k * m));
        let a = MatRef::from_row_major_slice(&a, k, n);
        assert!(collides(a.transpose()) && !collides(a));
        check(a.transpose(), MatRef::from_row_major_slice(&b, k, m));
    }
}
