//! Single and double precision behind one trait.
//!
//! Models store and compute in `f32`. Tests run the same code in `f64` to take finite differences.

use crate::linalg::{BlockProducts, Scalar};
use crate::sparse::StripProducts;
use num_traits::Float;
use std::borrow::Cow;
use std::fmt::{Debug, Display};
use std::iter::Sum;
use std::ops::{AddAssign, DivAssign, MulAssign, SubAssign};

/// `f32` or `f64`.
pub trait Real:
    Scalar
    + BlockProducts
    + StripProducts
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
    /// Rounds to the nearest number of this type.
    fn of(value: f64) -> Self;

    /// Converts to double precision.
    fn wide(self) -> f64;

    /// Returns eˣ, or zero where that is subnormal, so that subnormal numbers do not slow down sums. The error is at
    /// most 2 units in the last place. In `f32`, x is clamped to 88.37.
    fn exp_of(self) -> Self;

    /// Converts numbers of single precision to this type. They are copied only for `f64`.
    fn of_floats(values: &[f32]) -> Cow<'_, [Self]>;
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

    /// e^x = 2^n e^r with |r| ≤ ln 2 / 2, where e^r is the polynomial of the Cephes library. There are no branches and
    /// no calls, so the compiler vectorizes it, which it does not do for `f32::exp`.
    #[inline(always)]
    fn exp_of(self) -> f32 {
        /// Adding and subtracting it rounds to an integer.
        const ROUND: f32 = 12_582_912.0;
        const LN_2_HIGH: f32 = 0.693_359_4;
        const LN_2_LOW: f32 = -2.121_944_4e-4;
        /// Below it, e^x is not a normal number.
        const SMALLEST: f32 = -87.336_54;
        /// Above it, n would be 128, which does not fit into the exponent.
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
        // The last bits of `rounded` are n; shifted into the exponent they make 2^n.
        let power = f32::from_bits((rounded.to_bits() << 23).wrapping_add(1f32.to_bits()));
        if self < SMALLEST { 0.0 } else { p * power }
    }

    fn of_floats(values: &[f32]) -> Cow<'_, [f32]> {
        Cow::Borrowed(values)
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_agrees_with_the_standard_library() {
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
}
