//! Softmax of rows and of columns.

use crate::Real;
use num_traits::Float;
use rayon::prelude::*;

/// Replaces a row of logits x by the probabilities exp(xᵢ − lse) and returns lse = ln Σ exp(xᵢ).
///
/// A row of −∞ becomes a row of zeros with lse = −∞; an empty row also has lse = −∞. If any logit is NaN, so is lse.
pub fn softmax<T: Real>(row: &mut [T]) -> T {
    crate::vectorized(
        #[inline(always)]
        || softmax_inlined(row),
    )
}

#[inline(always)]
fn softmax_inlined<T: Real>(row: &mut [T]) -> T {
    let mut lanes = [T::neg_infinity(); LANES];
    row.chunks(LANES).for_each(|chunk| maximize(&mut lanes, chunk));
    let max = lanes.iter().fold(T::neg_infinity(), |max, &value| larger(max, value));
    if max == T::neg_infinity() {
        // Comparisons skip NaN, which must not turn into a probability of zero.
        let has_nan = row.iter().any(|value| Float::is_nan(*value));
        row.fill(if has_nan { T::nan() } else { T::zero() });
        return if has_nan { T::nan() } else { max };
    }
    let mut lanes = [T::zero(); LANES];
    row.chunks_mut(LANES).for_each(|chunk| exp_and_add(&mut lanes, chunk, max));
    let sum: T = lanes.iter().copied().sum();
    scale(row, T::one() / sum);
    max + sum.ln()
}

/// Number of independent partial sums and maxima. The compiler may not reorder additions, but it vectorizes this many
/// independent ones. The loops are separate functions for the same reason.
const LANES: usize = 64;

#[inline(always)]
fn maximize<T: Real>(lanes: &mut [T], values: &[T]) {
    lanes.iter_mut().zip(values).for_each(|(lane, &value)| *lane = larger(*lane, value));
}

#[inline(always)]
fn exp_and_add<T: Real>(lanes: &mut [T], values: &mut [T], max: T) {
    values.iter_mut().for_each(|value| *value = (*value - max).exp_of());
    lanes.iter_mut().zip(values).for_each(|(lane, &mut value)| *lane += value);
}

#[inline(always)]
fn scale<T: Real>(values: &mut [T], factor: T) {
    values.iter_mut().for_each(|value| *value *= factor);
}

/// Replaces every column of a row-major matrix of logits by probabilities, as [`softmax`] does for a row, and writes
/// one normalizer per column to `log_sums`.
///
/// # Panics
/// If the length of `columns` is not a multiple of that of `log_sums`.
pub fn softmax_columns<T: Real>(columns: &mut [T], log_sums: &mut [T]) {
    let n_columns = log_sums.len();
    assert!(
        n_columns > 0 && columns.len().is_multiple_of(n_columns),
        "columns must consist of whole rows"
    );
    let n_values = (ROWS * n_columns).max(1);
    let mut maxima = vec![T::neg_infinity(); n_columns];
    let parts = columns.par_chunks(n_values).map(|rows| column_maxima(rows, n_columns));
    for part in parts.collect::<Vec<_>>() {
        maxima.iter_mut().zip(part).for_each(|(max, value)| *max = larger(*max, value));
    }
    // A column of −∞ becomes zeros: exp(−∞ − 0) = 0.
    maxima.iter_mut().filter(|max| **max == T::neg_infinity()).for_each(|max| *max = T::zero());
    let mut sums = vec![T::zero(); n_columns];
    let parts = columns.par_chunks_mut(n_values).map(|rows| exp_and_sum(rows, &maxima));
    for part in parts.collect::<Vec<_>>() {
        sums.iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
    }
    for ((log_sum, &max), sum) in log_sums.iter_mut().zip(&maxima).zip(&mut sums) {
        *log_sum = max + sum.ln();
        *sum = if *sum > T::zero() { T::one() / *sum } else { T::zero() };
    }
    columns.par_chunks_mut(n_values).for_each(|rows| {
        crate::vectorized(
            #[inline(always)]
            || {
                for row in rows.chunks_exact_mut(n_columns) {
                    row.iter_mut().zip(&sums).for_each(|(value, &scale)| *value *= scale);
                }
            },
        );
    });
}

/// Number of rows per task. It is fixed so that the sums do not depend on the number of threads.
const ROWS: usize = 64;

fn column_maxima<T: Real>(rows: &[T], n_columns: usize) -> Vec<T> {
    let mut maxima = vec![T::neg_infinity(); n_columns];
    crate::vectorized(
        #[inline(always)]
        || {
            for row in rows.chunks_exact(n_columns) {
                maxima.iter_mut().zip(row).for_each(|(max, &value)| *max = larger(*max, value));
            }
        },
    );
    maxima
}

/// Replaces every x by exp(x − max) with the maximum of its column, and returns the sum of each column.
fn exp_and_sum<T: Real>(rows: &mut [T], maxima: &[T]) -> Vec<T> {
    let mut sums = vec![T::zero(); maxima.len()];
    crate::vectorized(
        #[inline(always)]
        || {
            for row in rows.chunks_exact_mut(maxima.len()) {
                for ((value, &max), sum) in row.iter_mut().zip(maxima).zip(&mut sums) {
                    *value = (*value - max).exp_of();
                    *sum += *value;
                }
            }
        },
    );
    sums
}

#[inline(always)]
fn larger<T: Real>(a: T, b: T) -> T {
    if b > a { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    #[test]
    fn softmax_agrees_with_its_definition_for_rows_of_any_length() {
        let mut rng = Rng::new(1);
        for n in [1, 2, 31, 32, 33, 100] {
            let logits: Vec<f64> = (0..n).map(|_| rng.uniform() * 40.0 - 20.0).collect();
            let lse = logits.iter().map(|x| x.exp()).sum::<f64>().ln();
            let mut row: Vec<f32> = logits.iter().map(|&x| x as f32).collect();
            assert!((softmax(&mut row).wide() - lse).abs() < 1e-5);
            for (p, x) in row.iter().zip(&logits) {
                assert!((p.wide() - (x - lse).exp()).abs() < 1e-5 * (x - lse).exp());
            }
        }
    }

    #[test]
    fn softmax_of_columns_agrees_with_softmax_of_rows() {
        let mut rng = Rng::new(2);
        let (n_rows, n_columns) = (200, 5);
        let mut columns: Vec<f64> = (0..1000).map(|_| rng.uniform() * 9.0).collect();
        columns.iter_mut().skip(3).step_by(5).for_each(|value| *value = f64::NEG_INFINITY);
        let before = columns.clone();
        let mut log_sums = vec![0.0; n_columns];
        softmax_columns(&mut columns, &mut log_sums);
        for j in 0..n_columns {
            let mut column: Vec<f64> = (0..n_rows).map(|i| before[i * n_columns + j]).collect();
            let lse = softmax(&mut column);
            assert!(lse == log_sums[j] || (lse - log_sums[j]).abs() < 1e-12);
            for (i, p) in column.iter().enumerate() {
                assert!((p - columns[i * n_columns + j]).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn a_row_of_minus_infinity_becomes_zeros() {
        let mut row = [f32::NEG_INFINITY; 40];
        assert_eq!(softmax(&mut row), f32::NEG_INFINITY);
        assert_eq!(row, [0.0; 40]);
        assert_eq!(softmax::<f32>(&mut []), f32::NEG_INFINITY);
        assert!(softmax(&mut [f32::NAN; 3]).is_nan());
        assert!(softmax(&mut [0.0, f32::NAN]).is_nan());
    }
}
