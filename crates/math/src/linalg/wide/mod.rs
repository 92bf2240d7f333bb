//! Matrix products of single precision with AVX-512.
//!
//! The kernel of `faer` reads six vectors for 24 products, about as fast as the L2 cache can deliver them, and columns of
//! one factor number by number, which misses the cache if they are rows of a transposed matrix. This kernel reads three
//! vectors for 24 products, and copies factors that are not contiguous. Both add the products of an entry in the same order,
//! so that the results are the same to the last bit.

mod copies;
mod kernel;

use super::registers::clear_upper_halves;
use crate::Aligned;
use copies::{copy_columns, copy_rows, is_row_major, parts};
use faer::{Accum, MatMut, MatRef};
use kernel::{COLUMNS, ROWS, Rows, multiply_block};
use std::cell::RefCell;

/// Terms that are added in registers before their sum is added to the result. `faer` has the same number.
const TERMS: usize = 512;

/// Columns that are copied at once, whole blocks of the kernel. The copy has to stay in the L2 cache.
const COLUMNS_TOGETHER: usize = 7 * COLUMNS;

/// Rows that are copied at once. The copy has to stay in the L2 cache.
const BAND: usize = 64;

thread_local! {
    /// Copies of rows of A and columns of B.
    static COPIES: RefCell<[Aligned<f32>; 2]> = RefCell::default();
}

/// Computes out = A B or out += A B and returns true, or returns false if the processor or the matrices are not
/// suitable. Products with few rows are not worth the copies of B.
pub(super) fn multiply(
    out: MatMut<'_, f32>,
    accum: Accum,
    a: MatRef<'_, f32>,
    b: MatRef<'_, f32>,
) -> bool {
    const FEW_ROWS: usize = 96;
    const SMALL: usize = 48;
    let is_large = a.nrows() >= FEW_ROWS && a.ncols() >= SMALL && b.ncols() >= SMALL;
    let is_contiguous = |m: MatRef<'_, f32>| is_row_major(m) || is_row_major(m.transpose());
    let fits = is_large && is_row_major(out.as_ref()) && is_contiguous(a) && is_contiguous(b);
    if !fits || !std::arch::is_x86_feature_detected!("avx512f") {
        return false;
    }
    COPIES.with_borrow_mut(|[rows, columns]| {
        let mut out = out;
        for first in (0..b.ncols()).step_by(COLUMNS_TOGETHER) {
            let n = COLUMNS_TOGETHER.min(b.ncols() - first);
            let out = out.as_mut().subcols_mut(first, n);
            multiply_in_parts(out, accum, a, b.subcols(first, n), rows, columns);
        }
    });
    clear_upper_halves();
    true
}

fn multiply_in_parts(
    mut out: MatMut<'_, f32>,
    mut accum: Accum,
    a: MatRef<'_, f32>,
    b: MatRef<'_, f32>,
    rows: &mut Aligned<f32>,
    columns: &mut Aligned<f32>,
) {
    for start in (0..a.ncols()).step_by(TERMS) {
        let n_terms = TERMS.min(a.ncols() - start);
        copy_columns(b.subrows(start, n_terms), columns);
        multiply_terms(out.as_mut(), accum, a.subcols(start, n_terms), columns, rows);
        accum = Accum::Add;
    }
}

/// Multiplies A by the copied columns of B.
fn multiply_terms(
    mut out: MatMut<'_, f32>,
    accum: Accum,
    a: MatRef<'_, f32>,
    columns: &[f32],
    copy: &mut Aligned<f32>,
) {
    /// Rows that begin this many numbers apart share sets of the L1 cache and evict each other.
    const PERIOD: isize = 256;
    let (n, n_terms) = (a.nrows(), a.ncols());
    let is_direct = is_row_major(a) && a.row_stride() % PERIOD != 0;
    for first in (0..n).step_by(BAND) {
        let band = a.subrows(first, BAND.min(n - first));
        if !is_direct {
            copy_rows(band, copy);
        }
        for row in (0..band.nrows()).step_by(ROWS) {
            let some = band.subrows(row, ROWS.min(band.nrows() - row));
            let next = if is_direct { n } else { n.min(first + row + BAND) };
            let next = a.subrows(next, ROWS.min(n - next));
            let rows = if !is_direct {
                Rows::of_copy(&copy[row * n_terms..][..ROWS * n_terms])
            } else if some.nrows() == ROWS {
                Rows::of_matrix(some)
            } else {
                copy_rows(some, copy);
                Rows::of_copy(copy)
            };
            let out = out.as_mut().subrows_mut(first + row, some.nrows());
            multiply_rows(out, accum, &rows, columns, next);
        }
    }
}

/// Multiplies at most [`ROWS`] rows by all columns. Meanwhile, the `next` rows are loaded from memory.
fn multiply_rows(
    mut out: MatMut<'_, f32>,
    accum: Accum,
    rows: &Rows<'_>,
    columns: &[f32],
    next: MatRef<'_, f32>,
) {
    let n = out.ncols();
    let n_parts = parts(n).count();
    for (i, part) in parts(n).enumerate() {
        copies::prefetch(next, i, n_parts);
        let columns = &columns[part.start * rows.n_terms()..part.end * rows.n_terms()];
        let mut out = out.as_mut().subcols_mut(part.start, part.len().min(n - part.start));
        if out.nrows() == ROWS && out.ncols() == part.len() {
            multiply_block(out, accum, rows, columns);
            continue;
        }
        // The block is larger than what is left of the matrix.
        let mut sums = [0.0; ROWS * COLUMNS];
        let sums = &mut sums[..ROWS * part.len()];
        let mut block = MatMut::from_row_major_slice_mut(sums, ROWS, part.len());
        multiply_block(block.as_mut(), Accum::Replace, rows, columns);
        let block = block.as_ref().submatrix(0, 0, out.nrows(), out.ncols());
        match accum {
            Accum::Replace => out.copy_from(block),
            Accum::Add => out += block,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::Par;
    use faer::linalg::matmul::matmul;

    /// Numbers whose products and sums are rounded.
    fn fractions(len: usize) -> Vec<f32> {
        (0..len).map(|i| (i * 37 % 1013) as f32 / 1013.0 - 0.4).collect()
    }

    /// A matrix of fractions in row-major order, or the transpose of one.
    fn matrix(values: &[f32], n: usize, m: usize, transposed: bool) -> MatRef<'_, f32> {
        if transposed {
            MatRef::from_row_major_slice(values, m, n).transpose()
        } else {
            MatRef::from_row_major_slice(values, n, m)
        }
    }

    #[test]
    fn products_are_those_of_faer_to_the_last_bit() {
        if !std::arch::is_x86_feature_detected!("avx512f") {
            return;
        }
        for (n, m, k) in [
            (96, 48, 48),
            (150, 304, 300),
            (129, 101, 515),
            (201, 77, 1030),
            (130, 60, 256),
            (99, 700, 70),
        ] {
            let (a, b) = (fractions(n * k), fractions(k * m));
            for (a_transposed, b_transposed) in
                [(false, false), (false, true), (true, false), (true, true)]
            {
                let (a, b) = (matrix(&a, n, k, a_transposed), matrix(&b, k, m, b_transposed));
                for accum in [Accum::Replace, Accum::Add] {
                    let (mut values, mut expected) = (fractions(n * m), fractions(n * m));
                    let out = MatMut::from_row_major_slice_mut(&mut values, n, m);
                    assert!(multiply(out, accum, a, b));
                    let out = MatMut::from_row_major_slice_mut(&mut expected, n, m);
                    matmul(out, accum, a, b, 1.0, Par::Seq);
                    assert_eq!(
                        values, expected,
                        "{n} {m} {k} {a_transposed} {b_transposed} {accum:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn numbers_around_a_part_of_a_matrix_stay() {
        let (n, m, k) = (101, 59, 61);
        let (a, b) = (fractions(n * k), fractions(k * m));
        let mut values = vec![7.0; (n + 2) * (m + 2)];
        let mut out = MatMut::from_row_major_slice_mut(&mut values, n + 2, m + 2);
        let (a, b) = (matrix(&a, n, k, false), matrix(&b, k, m, false));
        if multiply(out.as_mut().submatrix_mut(1, 1, n, m), Accum::Replace, a, b) {
            for (i, j) in (0..n + 2).flat_map(|i| (0..m + 2).map(move |j| (i, j))) {
                let is_inside = (1..=n).contains(&i) && (1..=m).contains(&j);
                assert!(is_inside || out[(i, j)] == 7.0);
            }
        }
    }
}
