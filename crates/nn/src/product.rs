//! Products of matrices, shared out to threads in fixed tiles.

use crate::rows::for_each_chunk;
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use latens_math::Real;

/// Rows of a tile, and columns if there are few rows: enough for full speed, few enough that the
/// gradient of a weight matrix of 256 × 256 is work for four threads.
const TILE: usize = 128;

/// From so many rows on, tiles have twice the columns, since there are enough of them.
const MANY_ROWS: usize = 1024;

/// out = A B, or out += A B.
///
/// Every tile of `out` is one product on one thread. faer's own threads wait for each other many
/// times in a product, which on busy cores can take ten times as long as one thread does; and where
/// `out` is a single row, the order of its sums depends on their number.
pub fn multiply<T: Real>(
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
            matmul(out, accum, a, b, T::one(), Par::Seq);
        });
    });
}

/// Whether A is a transposed matrix whose rows lie a multiple of 4 KiB apart. Then the numbers of a row of A are all
/// on the same few lines of the first cache, which push each other out.
fn collides<T>(a: MatRef<'_, T>) -> bool {
    const PERIOD: usize = 4096;
    let distance = a.col_stride().unsigned_abs() * size_of::<T>();
    a.row_stride() == 1 && distance > 0 && distance.is_multiple_of(PERIOD)
}

/// The product with an `out` of columns in between: then A is read in whole lines, and put in another order once. That
/// is one and a half times as fast for such A.
fn multiply_by_columns<T: Real>(
    mut out: MatMut<'_, T>,
    accum: Accum,
    a: MatRef<'_, T>,
    b: MatRef<'_, T>,
) {
    let mut columns = Mat::<T>::zeros(out.nrows(), out.ncols());
    matmul(columns.as_mut(), Accum::Replace, a, b, T::one(), Par::Seq);
    match accum {
        Accum::Replace => out.copy_from(&columns),
        Accum::Add => out += &columns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Buffer;
    use crate::exam::buffer;

    #[test]
    fn tiles_make_up_the_product() {
        for (n, m, k) in [(1, 1, 1), (3, 300, 2), (257, 129, 10), (2, 3, 0), (0, 3, 2)] {
            let numbers = |len| (0..len).map(|i| f64::from(i * 37 % 101)).collect::<Vec<_>>();
            let a = buffer(&numbers((n * k) as u32), n, k);
            let b = buffer(&numbers((k * m) as u32), k, m);
            let mut out = Buffer::new();
            out.resize(n, m);
            out.values_mut().fill(7.0);
            multiply(out.view_mut(), Accum::Replace, a.view(), b.view(), Par::Seq);
            multiply(out.view_mut(), Accum::Add, a.view(), b.view(), Par::rayon(0));
            for (i, j) in (0..n).flat_map(|i| (0..m).map(move |j| (i, j))) {
                let sum: f64 = (0..k).map(|l| a.view()[(i, l)] * b.view()[(l, j)]).sum();
                assert_eq!(out.view()[(i, j)], 2.0 * sum);
            }
        }
    }

    #[test]
    fn rows_that_collide_make_the_same_product() {
        // 512 numbers of double precision are 4 KiB.
        let (n, m, k) = (512, 140, 3);
        let numbers = |len| (0..len).map(|i| f64::from(i * 37 % 101)).collect::<Vec<_>>();
        let a = buffer(&numbers((k * n) as u32), k, n);
        let b = buffer(&numbers((k * m) as u32), k, m);
        assert!(collides(a.view().transpose()) && !collides(a.view()));
        let mut out = Buffer::new();
        out.resize(n, m);
        out.values_mut().fill(7.0);
        let a = a.view().transpose();
        multiply(out.view_mut(), Accum::Replace, a, b.view(), Par::Seq);
        multiply(out.view_mut(), Accum::Add, a, b.view(), Par::rayon(0));
        for (i, j) in (0..n).flat_map(|i| (0..m).map(move |j| (i, j))) {
            let sum: f64 = (0..k).map(|l| a[(i, l)] * b.view()[(l, j)]).sum();
            assert_eq!(out.view()[(i, j)], 2.0 * sum);
        }
    }
}
