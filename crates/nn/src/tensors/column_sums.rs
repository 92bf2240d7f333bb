//! Sums over the columns of a matrix.

use latens_math::Real;
use latens_math::linalg::{MatRef, Par};
use latens_math::rows::{for_each_chunk, row};

/// Number of columns summed at once: as many as fit into the vector registers.
const COLUMNS: usize = 256;

/// Number of rows summed before the sum is added to the total. The rounding error of a sum grows with the number of
/// its terms.
const ROWS: usize = 64;

/// Adds the sum of each column to `totals`.
///
/// Threads work on different columns, and each column is summed in the order of the rows.
///
/// # Panics
/// If `totals` does not have one value per column.
pub fn add_column_sums<T: Real>(matrix: MatRef<'_, T>, totals: &mut [T], par: Par) {
    assert_eq!(matrix.ncols(), totals.len(), "`totals` must have one value per column");
    for_each_chunk(
        (totals, matrix.transpose()),
        COLUMNS,
        par,
        #[inline(always)]
        |(totals, columns): (&mut [T], MatRef<'_, T>)| {
            let matrix = columns.transpose();
            for start in (0..matrix.nrows()).step_by(ROWS) {
                let mut sums = [T::zero(); COLUMNS];
                for row_idx in start..matrix.nrows().min(start + ROWS) {
                    let row = row(matrix, row_idx);
                    sums.iter_mut().zip(row).for_each(|(sum, &value)| *sum += value);
                }
                totals.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensors::Buffer;

    #[test]
    fn column_sums_are_added_to_the_totals() {
        for (n_rows, n_columns) in [(1, 1), (3, 70), (200, 5), (0, 4)] {
            let mut matrix = Buffer::new();
            matrix.resize(n_rows, n_columns);
            matrix.values_mut().iter_mut().enumerate().for_each(|(i, x)| *x = i as f64);
            let mut totals = vec![1.0; n_columns];
            add_column_sums(matrix.view(), &mut totals, Par::Seq);
            for (j, total) in totals.iter().enumerate() {
                let sum: f64 = (0..n_rows).map(|i| (i * n_columns + j) as f64).sum();
                assert_eq!(*total, 1.0 + sum);
            }
        }
    }
}
