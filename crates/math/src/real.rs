//! Numbers of single or double precision, and exponentials of many of them at once.
//!
//! Models store and compute in `f32`. The same code in `f64` is what finite differences are taken of.

use num_traits::Float;
use rayon::prelude::*;
use std::fmt::{Debug, Display};
use std::iter::Sum;
use std::ops::{AddAssign, DivAssign, MulAssign, SubAssign};

/// `f32` or `f64`.
pub trait Real:
    faer::traits::RealField
    + Float
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
    + Sum
    + Default
    + Debug
    + Display
    + Send
    + Sync
    + 'static
{
    /// The nearest number of this type.
    fn of(value: f64) -> Self;

    /// The number in double precision.
    fn wide(self) -> f64;

    /// e^x; zero where that is below the smallest normal number, so that no sum is slowed down by
    /// subnormal ones. At most 2 units in the last place off (`f32`).
    fn exp_of(self) -> Self;
}

impl Real for f32 {
    #[inline(always)]
    fn of(value: f64) -> f32 {
        value as f32
    }

    #[inline(always)]
    fn wide(self) -> f64 {
        f64::from(self)
    }

    /// e^x = 2^n e^r with |r| ≤ ln 2 / 2, e^r by the polynomial of the Cephes library. Written without
    /// branches and calls, so that the compiler makes vectors of it, which it does not of `f32::exp`.
    #[inline(always)]
    fn exp_of(self) -> f32 {
        /// Adding and subtracting it rounds to a whole number.
        const ROUND: f32 = 12_582_912.0;
        const LN_2_HIGH: f32 = 0.693_359_4;
        const LN_2_LOW: f32 = -2.121_944_4e-4;
        let x = self.clamp(-87.336_54, 88.722_83);
        let n = x * std::f32::consts::LOG2_E + ROUND - ROUND;
        let r = x - n * LN_2_HIGH - n * LN_2_LOW;
        let mut p = 1.987_569_1e-4_f32;
        p = p * r + 1.398_199_9e-3;
        p = p * r + 8.333_452e-3;
        p = p * r + 4.166_579_6e-2;
        p = p * r + 1.666_666_5e-1;
        p = p * r + 5.000_000_2e-1;
        p = p * r * r + r + 1.0;
        // 2^n in two factors: n can be 128, which has no exponent of its own.
        let half = (n * 0.5) as i32;
        let rest = n as i32 - half;
        let power = |n: i32| f32::from_bits(((n + 127) << 23) as u32);
        let exp = p * power(half) * power(rest);
        if self < -87.336_54 { 0.0 } else { exp }
    }
}

impl Real for f64 {
    #[inline(always)]
    fn of(value: f64) -> f64 {
        value
    }

    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }

    #[inline(always)]
    fn exp_of(self) -> f64 {
        if self < -708.39 { 0.0 } else { self.exp() }
    }
}

/// Turns one row of logits x into probabilities exp(xᵢ − lse), and returns lse = ln Σ exp(xᵢ).
///
/// A row of −∞ alone becomes a row of zeros, with lse = −∞; an empty row has lse = −∞ too.
pub fn softmax<T: Real>(row: &mut [T]) -> T {
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || softmax_inlined(row),
    )
}

#[inline(always)]
fn softmax_inlined<T: Real>(row: &mut [T]) -> T {
    let max = maximum(row);
    if max == T::neg_infinity() {
        row.fill(T::zero());
        return max;
    }
    let mut sums = [T::zero(); LANES];
    let mut chunks = row.chunks_exact_mut(LANES);
    for chunk in &mut chunks {
        for (value, sum) in chunk.iter_mut().zip(&mut sums) {
            *value = (*value - max).exp_of();
            *sum += *value;
        }
    }
    for (value, sum) in chunks.into_remainder().iter_mut().zip(&mut sums) {
        *value = (*value - max).exp_of();
        *sum += *value;
    }
    let sum: T = sums.iter().copied().sum();
    let scale = T::one() / sum;
    row.iter_mut().for_each(|value| *value *= scale);
    max + sum.ln()
}

/// How many partial sums and maxima run side by side, as the compiler may not reorder additions.
const LANES: usize = 32;

#[inline(always)]
fn maximum<T: Real>(row: &[T]) -> T {
    let mut maxima = [T::neg_infinity(); LANES];
    let chunks = row.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (max, &value) in maxima.iter_mut().zip(chunk) {
            *max = if value > *max { value } else { *max };
        }
    }
    let all = maxima.iter().chain(rest);
    all.fold(T::neg_infinity(), |max, &value| if value > max { value } else { max })
}

/// Turns every column of logits into probabilities, as [`softmax`] does with a row; `columns` is
/// row-major, and `log_sums` gets one number a column.
///
/// # Panics
/// If `columns` is no whole number of rows.
pub fn softmax_columns<T: Real>(columns: &mut [T], log_sums: &mut [T]) {
    let n_columns = log_sums.len();
    assert!(n_columns > 0 && columns.len().is_multiple_of(n_columns), "whole rows");
    let n_values = (ROWS * n_columns).max(1);
    let mut maxima = vec![T::neg_infinity(); n_columns];
    let parts = columns.par_chunks(n_values).map(|rows| column_maxima(rows, n_columns));
    for part in parts.collect::<Vec<_>>() {
        maxima.iter_mut().zip(part).for_each(|(max, value)| *max = larger(*max, value));
    }
    // A column without any weight keeps its zeros: exp(−∞ − 0) = 0.
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
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                for row in rows.chunks_exact_mut(n_columns) {
                    row.iter_mut().zip(&sums).for_each(|(value, &scale)| *value *= scale);
                }
            },
        );
    });
}

/// How many rows one thread takes at a time; sums are made of as many whatever the number of threads.
const ROWS: usize = 64;

fn column_maxima<T: Real>(rows: &[T], n_columns: usize) -> Vec<T> {
    let mut maxima = vec![T::neg_infinity(); n_columns];
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || {
            for row in rows.chunks_exact(n_columns) {
                maxima.iter_mut().zip(row).for_each(|(max, &value)| *max = larger(*max, value));
            }
        },
    );
    maxima
}

/// Replaces every x by exp(x − max) of its column, and returns the sums of columns.
fn exp_and_sum<T: Real>(rows: &mut [T], maxima: &[T]) -> Vec<T> {
    let mut sums = vec![T::zero(); maxima.len()];
    pulp::Arch::new().dispatch(
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
    fn the_exponential_is_that_of_the_standard_library() {
        let mut worst = 0.0f64;
        for i in -87_000..88_700 {
            let x = i as f32 * 1e-3;
            let exact = f64::from(x).exp();
            worst = worst.max((x.exp_of().wide() - exact).abs() / exact);
        }
        assert!(worst < 2.5e-7, "{worst}");
        assert_eq!(0f32.exp_of(), 1.0);
        assert_eq!((-88f32).exp_of(), 0.0);
        assert_eq!(f32::NEG_INFINITY.exp_of(), 0.0);
        assert_eq!(f64::NEG_INFINITY.exp_of(), 0.0);
        assert!(88.7f32.exp_of().is_finite());
        assert!(f32::NAN.exp_of().is_nan());
    }

    #[test]
    fn softmax_is_its_definition_for_rows_of_any_length() {
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
    fn columns_are_like_rows() {
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
    fn a_row_without_weight_becomes_zeros() {
        let mut row = [f32::NEG_INFINITY; 40];
        assert_eq!(softmax(&mut row), f32::NEG_INFINITY);
        assert_eq!(row, [0.0; 40]);
        assert_eq!(softmax::<f32>(&mut []), f32::NEG_INFINITY);
    }
}
