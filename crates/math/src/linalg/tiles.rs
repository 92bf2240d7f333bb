//! Matrix products in tiles that threads share.

use super::registers::clear_upper_halves;
use crate::rows::for_each_chunk;
use faer::linalg::matmul::matmul;
use faer::traits::RealField;
use faer::{Accum, Mat, MatMut, MatRef, Par};

/// Largest tiles, as rows and columns, the best first: large ones read the factors less often, small ones keep more threads
/// busy.
const TILES: [(usize, usize); 5] = [(512, 320), (256, 320), (256, 160), (128, 160), (128, 128)];

/// Tiles are whole vector registers long and wide.
const LANES: usize = 16;

/// Computes out = A B or out += A B on the threads of `par`; see [`multiply`](super::multiply).
pub(super) fn multiply<T: RealField + Copy>(
    out: MatMut<'_, T>,
    accum: Accum,
    a: MatRef<'_, T>,
    b: MatRef<'_, T>,
    par: Par,
    wide: impl Fn(MatMut<'_, T>, Accum, MatRef<'_, T>, MatRef<'_, T>) -> bool + Sync,
) {
    let (n_rows, n_columns) = tile(out.nrows(), out.ncols(), par);
    let collides = collides(a);
    for_each_chunk((out, a), n_rows, par, |(out, a)| {
        for_each_chunk((out.transpose_mut(), b.transpose()), n_columns, par, |(out, b)| {
            let (mut out, b) = (out.transpose_mut(), b.transpose());
            if wide(out.as_mut(), accum, a, b) {
                return;
            }
            if collides {
                return multiply_by_columns(out, accum, a, b);
            }
            matmul(out, accum, a, b, T::one_impl(), Par::Seq);
            clear_upper_halves();
        });
    });
}

/// Returns the rows and columns of a tile of an n × m product: the first of [`TILES`] that gives
/// one tile to every thread, or at least two. The sum of an entry has the same order in every tile, so that the result does not depend on the number of
/// threads.
fn tile(n: usize, m: usize, par: Par) -> (usize, usize) {
    let n_threads = match par {
        Par::Seq => 1,
        Par::Rayon(_) => rayon::current_num_threads(),
    };
    let is_enough = |&(rows, columns): &(usize, usize)| {
        let n_tiles = n.div_ceil(rows) * m.div_ceil(columns);
        n_tiles == n_threads || n_tiles >= 2 * n_threads
    };
    let &(rows, columns) = TILES.iter().find(|&sizes| is_enough(sizes)).unwrap_or(&TILES[4]);
    (equal_part(n, rows), equal_part(m, columns))
}

/// Returns the length of parts of n that are about equal, and at most `max` long. A short last part would take almost as
/// long as a whole one.
fn equal_part(n: usize, max: usize) -> usize {
    let n_parts = n.div_ceil(max).max(1);
    n.div_ceil(n_parts).next_multiple_of(LANES).max(LANES)
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
    use crate::linalg::{Scalar, multiply};

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
    fn parts_are_about_equal() {
        // Three parts of 112 and one of 64 instead of three of 128 and one of 16.
        assert_eq!(
            [equal_part(400, 128), equal_part(300, 160), equal_part(256, 256)],
            [112, 160, 256]
        );
        assert_eq!([equal_part(0, 128), equal_part(1, 128)], [16, 16]);
        for max in [128, 160, 256, 320] {
            assert!((0..3000).all(|n| equal_part(n, max) <= max));
        }
    }

    /// Numbers whose products and sums are rounded.
    fn fractions<T: From<f32>>(len: usize) -> Vec<T> {
        (0..len).map(|i| T::from((i * 37 % 101) as f32 / 101.0 - 0.4)).collect()
    }

    fn check_bits<T: Scalar + From<f32> + PartialEq + std::fmt::Debug>() {
        for (n, m, k) in [(400, 300, 70), (130, 700, 3), (700, 130, 333), (20, 1000, 17)] {
            let (a, b) = (fractions::<T>(n * k), fractions::<T>(k * m));
            let a = MatRef::from_row_major_slice(&a, n, k);
            let b = MatRef::from_row_major_slice(&b, k, m);
            let product = |par| {
                let mut values = vec![T::zero_impl(); n * m];
                let out = MatMut::from_row_major_slice_mut(&mut values, n, m);
                multiply(out, Accum::Replace, a, b, par);
                values
            };
            let alone = product(Par::Seq);
            for n_threads in [2, 5, 16] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
                assert_eq!(pool.install(|| product(Par::rayon(0))), alone, "{n_threads} threads");
            }
        }
    }

    #[test]
    fn the_tiles_of_any_number_of_threads_make_the_same_product() {
        check_bits::<f32>();
        check_bits::<f64>();
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
