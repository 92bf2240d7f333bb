//! Sums of probabilities given by their natural logarithms.

/// Returns ln(eᵃ + eᵇ) without overflow or underflow of either term; −∞ stands for zero.
#[inline]
pub fn log_add(a: f64, b: f64) -> f64 {
    let (large, small) = if a > b { (a, b) } else { (b, a) };
    // The difference of two equal infinities is NaN, but their sum is that infinity.
    if large == small && large.is_infinite() {
        return large;
    }
    large + (small - large).exp().ln_1p()
}

/// Returns ln Σᵢ exp(vᵢ) without overflow or underflow of any term.
///
/// The result is −∞ if there are no values or all are −∞, and NaN if any value is NaN.
pub fn log_sum_exp(values: &[f64]) -> f64 {
    let max = max_or_nan(values);
    if !max.is_finite() {
        return max;
    }
    max + values.iter().map(|value| (value - max).exp()).sum::<f64>().ln()
}

/// Returns the largest value, −∞ for an empty slice, and NaN if any value is NaN, which `f64::max` would hide.
pub(crate) fn max_or_nan(values: &[f64]) -> f64 {
    values.iter().fold(
        f64::NEG_INFINITY,
        |max, &value| {
            if value > max || value.is_nan() { value } else { max }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ZERO: f64 = f64::NEG_INFINITY;

    #[test]
    fn zeros_add_nothing() {
        assert_eq!(log_sum_exp(&[]), ZERO);
        assert_eq!(log_sum_exp(&[ZERO, ZERO]), ZERO);
        assert_eq!(log_sum_exp(&[ZERO, 1.5, ZERO]), 1.5);
        assert_eq!(log_add(ZERO, ZERO), ZERO);
        assert_eq!(log_add(ZERO, 1.5), 1.5);
        assert_eq!(log_add(1.5, ZERO), 1.5);
    }

    #[test]
    fn an_infinite_term_makes_the_sum_infinite() {
        assert_eq!(log_sum_exp(&[0.0, f64::INFINITY, ZERO]), f64::INFINITY);
        assert_eq!(log_add(f64::INFINITY, f64::INFINITY), f64::INFINITY);
        assert_eq!(log_add(f64::INFINITY, 0.0), f64::INFINITY);
    }

    #[test]
    fn nan_propagates() {
        assert!(log_sum_exp(&[f64::NAN]).is_nan());
        assert!(log_sum_exp(&[f64::NAN, 1.0]).is_nan());
        assert!(log_sum_exp(&[1.0, f64::NAN, f64::INFINITY]).is_nan());
        assert!(log_add(f64::NAN, 1.0).is_nan());
        assert!(log_add(1.0, f64::NAN).is_nan());
    }

    #[test]
    fn large_magnitudes_neither_overflow_nor_underflow() {
        let two = 2f64.ln();
        assert!((log_sum_exp(&[1000.0, 1000.0]) - (1000.0 + two)).abs() < 1e-12);
        assert!((log_sum_exp(&[-1000.0, -1000.0]) - (-1000.0 + two)).abs() < 1e-12);
        assert!((log_add(-1e6, -1e6) - (-1e6 + two)).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn sums_agree_with_plain_arithmetic(weights in prop::collection::vec(0.0..10.0f64, 1..20)) {
            let logs: Vec<f64> = weights.iter().map(|w| w.ln()).collect();
            let expected = weights.iter().sum::<f64>();
            let one_by_one = logs.iter().fold(ZERO, |sum, &log| log_add(sum, log));
            let tolerance = 1e-12 * expected;
            prop_assert!((log_sum_exp(&logs).exp() - expected).abs() <= tolerance);
            prop_assert!((one_by_one.exp() - expected).abs() <= tolerance);
        }
    }
}
