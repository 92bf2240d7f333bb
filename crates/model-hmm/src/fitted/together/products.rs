//! Products of rows with a block, and other passes over vectors of states.

use latens_math::BlockRef;
use latens_math::linalg::{Accum, MatMut, MatRef, Par, multiply};
use rayon::prelude::*;

/// Smaller factors become zero, because products with them would be subnormal numbers, which slow processors down a
/// hundredfold. They are negligible: a sum of such products must be at least `latens_math::chain::SMALLEST_SCALE`.
const SMALLEST_FACTOR: f32 = 1e-30;

/// Number of partial results: the compiler may not reorder additions and comparisons by itself.
pub(crate) const LANES: usize = 16;

/// Number of sentences per task, for passes over vectors of k values.
pub(crate) fn per_task(k: usize) -> usize {
    (1 << 14) / k + 1
}

/// Rows of k values, one after the other.
pub(crate) fn stacked<'v>(rows: impl ExactSizeIterator<Item = &'v [f32]>, k: usize) -> Vec<f32> {
    let mut stacked = Vec::with_capacity(rows.len() * k);
    rows.for_each(|row| stacked.extend_from_slice(row));
    stacked
}

/// The product of some rows with a block, or with its transpose. The sums of tiny products are not exact.
pub(crate) fn product(left: &[f32], block: &[f32], k: usize, is_transposed: bool) -> Vec<f32> {
    /// Number of states and of rows from which a general matrix product is faster.
    const MIN_STATES: usize = 256;
    const MIN_ROWS: usize = 4;
    const ROWS_PER_TASK: usize = 64;
    let n = left.len() / k;
    let mut out = vec![0.0; n * k];
    if k < MIN_STATES || n < MIN_ROWS {
        let block = BlockRef::new(block, k, 0..k, 0..k);
        // A fixed number of rows, so that rounding does not depend on the number of threads.
        let rows = left.par_chunks(ROWS_PER_TASK * k).zip(out.par_chunks_mut(ROWS_PER_TASK * k));
        rows.for_each(|(left, out)| match is_transposed {
            false => block.times_rows(left, out),
            true => block.transposed_times_rows(left, out),
        });
        return out;
    }
    let rows = MatRef::from_row_major_slice(left, n, k);
    let block = MatRef::from_row_major_slice(block, k, k);
    let block = if is_transposed { block.transpose() } else { block };
    let sums = MatMut::from_row_major_slice_mut(&mut out, n, k);
    multiply(sums, Accum::Replace, rows, block, Par::rayon(0));
    out
}

#[inline(always)]
pub(crate) fn flush(factor: f32) -> f32 {
    if factor < SMALLEST_FACTOR { 0.0 } else { factor }
}
