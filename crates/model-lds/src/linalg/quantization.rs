//! Quantization of rows: 16 bits per number, with one scale per row.
//!
//! The error is about 2⁻¹⁶ of a row's largest number, far below the error of the randomized decomposition.
//! Double precision, the reference in tests, is stored as it is.

use latens_math::Real;

/// Numbers that can be quantized row by row.
pub(crate) trait Quantize: Real {
    /// The stored form of a number.
    type Code: Copy + Default + Send + Sync;

    /// The stored form of the scale of a row.
    type Scale: Copy + Default + Send + Sync;

    /// The largest rounding error, relative to the largest number of the row.
    const ROUNDING: f64;

    /// Quantizes a row and returns its scale.
    fn quantize(row: &[Self], out: &mut [Self::Code]) -> Self::Scale;

    fn dequantize(row: &[Self::Code], scale: Self::Scale, out: &mut [Self]);
}

impl Quantize for f32 {
    type Code = i16;

    /// The upper 16 bits of a number in single precision.
    type Scale = u16;

    // A scale is rounded up by a factor of at most 1 + 2⁻⁷.
    const ROUNDING: f64 = 0.5 * (1.0 + 1.0 / 128.0) / 32_767.0;

    #[inline(always)]
    fn quantize(row: &[f32], out: &mut [i16]) -> u16 {
        // As integers, absolute values keep their order and NaN is the largest, so that NaN propagates.
        let bits = row.iter().map(|value| (value.to_bits() & 0x7fff_ffff) as i32);
        let largest = f32::from_bits(bits.fold(0, i32::max) as u32);
        if largest < 1e-30 {
            out.fill(0);
            return 0;
        }
        /// Adding 1.5 · 2²³ leaves the nearest integer in the lowest bits.
        const ROUND: f32 = 12_582_912.0;
        /// The upper half of the usual NaN. Other NaNs would overflow when rounded up.
        const NAN: u32 = 0x7fc0;
        // Rounded up, so that the largest number does not overflow.
        let half = (((largest / 32_767.0).to_bits() + 0xffff) >> 16).min(NAN) as u16;
        let scale = 1.0 / wide(half);
        for (out, value) in out.iter_mut().zip(row) {
            *out = (value * scale + ROUND).to_bits() as i16;
        }
        half
    }

    #[inline(always)]
    fn dequantize(row: &[i16], scale: u16, out: &mut [f32]) {
        let scale = wide(scale);
        out.iter_mut().zip(row).for_each(|(out, &value)| *out = f32::from(value) * scale);
    }
}

/// The number with these upper 16 bits.
#[inline(always)]
fn wide(half: u16) -> f32 {
    f32::from_bits(u32::from(half) << 16)
}

impl Quantize for f64 {
    type Code = f64;

    type Scale = ();

    const ROUNDING: f64 = 0.0;

    fn quantize(row: &[f64], out: &mut [f64]) {
        out.copy_from_slice(row);
    }

    fn dequantize(row: &[f64], (): (), out: &mut [f64]) {
        out.copy_from_slice(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_math::Rng;

    #[test]
    fn the_rounding_error_is_small_relative_to_the_largest_number_of_a_row() {
        let mut rng = Rng::new(1);
        for scale in [1e-20, 1e-3, 1.0, 1.01, 1.99, 1e20] {
            let row: Vec<f32> = (0..50).map(|_| (scale * rng.normal()) as f32).collect();
            let (mut codes, mut out) = ([0; 50], [0.0; 50]);
            let scale = f32::quantize(&row, &mut codes);
            f32::dequantize(&codes, scale, &mut out);
            let largest = row.iter().fold(0.0f32, |most, x| most.max(x.abs()));
            assert!(row.iter().zip(out).all(|(x, y)| (x - y).abs() <= 1.6e-5 * largest));
        }
    }

    #[test]
    fn nan_and_infinity_become_nan() {
        let values = [f32::NAN, f32::from_bits(0x7fff_ffff), f32::INFINITY, f32::NEG_INFINITY];
        for not_finite in values {
            let (mut codes, mut out) = ([0; 3], [0.0; 3]);
            let scale = f32::quantize(&[1.0, not_finite, 2.0], &mut codes);
            f32::dequantize(&codes, scale, &mut out);
            assert!(out.iter().all(|x| x.is_nan()), "{out:?}");
        }
        assert_eq!(f32::quantize(&[0.0, 0.0], &mut [7, 7]), 0);
    }
}
