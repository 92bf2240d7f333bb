//! Numbers of single or double precision, and exponentials of many of them at once.
//!
//! Models store and compute in `f32`. The same code in `f64` is what finite differences are taken of.

use crate::products::{self, BlockRef, TimesRows, TransposedTimesRows};
use crate::strips::SparseProduct;
use num_traits::Float;
use rayon::prelude::*;
use std::borrow::Cow;
use std::fmt::{Debug, Display};
use std::iter::Sum;
use std::ops::{AddAssign, DivAssign, MulAssign, SubAssign};

/// `f32` or `f64`.
pub trait Real:
    crate::linalg::Scalar
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
    /// subnormal ones. At most 2 units in the last place off (`f32`, up to 88.37; more is cut to that).
    fn exp_of(self) -> Self;

    /// Numbers in single precision as numbers of this type, copied only where they must be.
    fn of_floats(values: &[f32]) -> Cow<'_, [Self]>;

    /// What [`BlockRef::times_rows`] does.
    #[doc(hidden)]
    fn times_rows(block: BlockRef<'_, Self>, left: &[Self], out: &mut [Self]);

    /// What [`BlockRef::transposed_times_rows`] does.
    #[doc(hidden)]
    fn transposed_times_rows(block: BlockRef<'_, Self>, left: &[Self], out: &mut [Self]);

    /// What [`crate::Strip::add_product`] does.
    #[doc(hidden)]
    fn add_sparse_product(product: SparseProduct<'_, Self>);
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
        /// Where e^x is no longer a normal number.
        const SMALLEST: f32 = -87.336_54;
        /// Where n would be 128, which is no exponent.
        const LARGEST: f32 = 88.37;
        let x = if self > LARGEST { LARGEST } else { self };
        let x = if x < SMALLEST { SMALLEST } else { x };
        let rounded = x * std::f32::consts::LOG2_E + ROUND;
        let n = rounded - ROUND;
        let r = x - n * LN_2_HIGH - n * LN_2_LOW;
        let mut p = 1.987_569_1e-4_f32;
        p = p * r + 1.398_199_9e-3;
        p = p * r + 8.333_452e-3;
        p = p * r + 4.166_579_6e-2;
        p = p * r + 1.666_666_5e-1;
        p = p * r + 0.5;
        p = p * r * r + r + 1.0;
        // The last bits of the sum are n; moved to the place of the exponent they are 2^n.
        let power = f32::from_bits((rounded.to_bits() << 23).wrapping_add(1f32.to_bits()));
        if self < SMALLEST { 0.0 } else { p * power }
    }

    fn of_floats(values: &[f32]) -> Cow<'_, [f32]> {
        Cow::Borrowed(values)
    }

    fn times_rows(block: BlockRef<'_, f32>, left: &[f32], out: &mut [f32]) {
        pulp::Arch::new().dispatch(TimesRows { block, left, out });
    }

    fn transposed_times_rows(block: BlockRef<'_, f32>, left: &[f32], out: &mut [f32]) {
        pulp::Arch::new().dispatch(TransposedTimesRows { block, left, out });
    }

    fn add_sparse_product(product: SparseProduct<'_, f32>) {
        pulp::Arch::new().dispatch(product);
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

    fn of_floats(values: &[f32]) -> Cow<'_, [f64]> {
        Cow::Owned(values.iter().map(|&value| f64::from(value)).collect())
    }

    fn times_rows(block: BlockRef<'_, f64>, left: &[f64], out: &mut [f64]) {
        products::times_rows(block, left, out);
    }

    fn transposed_times_rows(block: BlockRef<'_, f64>, left: &[f64], out: &mut [f64]) {
        products::transposed_times_rows(block, left, out);
    }

    fn add_sparse_product(product: SparseProduct<'_, f64>) {
        product.add();
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
    let mut lanes = [T::neg_infinity(); LANES];
    row.chunks(LANES).for_each(|chunk| maximize(&mut lanes, chunk));
    let max = lanes.iter().fold(T::neg_infinity(), |max, &value| larger(max, value));
    if max == T::neg_infinity() {
        // Comparisons pass over a NaN, but nobody may take it for an impossibility.
        let is_lost = row.iter().any(|value| Float::is_nan(*value));
        row.fill(if is_lost { T::nan() } else { T::zero() });
        return if is_lost { T::nan() } else { max };
    }
    let mut lanes = [T::zero(); LANES];
    row.chunks_mut(LANES).for_each(|chunk| exp_and_add(&mut lanes, chunk, max));
    let sum: T = lanes.iter().copied().sum();
    scale(row, T::one() / sum);
    max + sum.ln()
}

/// How many partial sums and maxima run side by side, as the compiler may not reorder additions. This many
/// it turns into vectors; the loops are functions of their own for the same reason.
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
        for i in -87_000..88_300 {
            let x = i as f32 * 1e-3;
            let exact = f64::from(x).exp();
            worst = worst.max((x.exp_of().wide() - exact).abs() / exact);
        }
        assert!(worst < 2.5e-7, "{worst}");
        assert_eq!(0f32.exp_of(), 1.0);
        assert_eq!((-88f32).exp_of(), 0.0);
        assert_eq!(f32::NEG_INFINITY.exp_of(), 0.0);
        assert_eq!(f64::NEG_INFINITY.exp_of(), 0.0);
        assert!(1e9f32.exp_of().is_finite());
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
        assert!(softmax(&mut [f32::NAN; 3]).is_nan());
        assert!(softmax(&mut [0.0, f32::NAN]).is_nan());
    }
}
