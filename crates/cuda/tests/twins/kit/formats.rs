//! A twin of the 16-bit number formats.

use latens_cuda::{bf16, f16};

/// A 16-bit format: number of stored significand bits, and smallest exponent of a normal number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    n_bits: i32,
    smallest: i32,
}

impl Format {
    pub(crate) const HALF: Format = Format { n_bits: 10, smallest: -14 };
    pub(crate) const BF16: Format = Format { n_bits: 7, smallest: -126 };

    /// The exponent, as stored, of infinity and NaN.
    fn largest(self) -> i32 {
        3 - 2 * self.smallest
    }

    /// The bits of the nearest number, ties to even.
    pub(crate) fn encode(self, x: f32) -> u16 {
        let infinite = (self.largest() << self.n_bits) as u16;
        let sign = if x.is_sign_negative() { 0x8000 } else { 0 };
        if x.is_nan() {
            return infinite | 1 << (self.n_bits - 1);
        }
        let size = f64::from(x.abs());
        if size.is_infinite() {
            return sign | infinite;
        }
        let exponent =
            if size == 0.0 { self.smallest } else { exponent_of(size).max(self.smallest) };
        let units = (size / 2f64.powi(exponent - self.n_bits)).round_ties_even() as i32;
        // Rounding up from the largest number overflows to infinity.
        let bits = ((exponent - self.smallest) << self.n_bits) + units;
        sign | bits.min(i32::from(infinite)) as u16
    }

    pub(crate) fn decode(self, bits: u16) -> f64 {
        let sign = if bits & 0x8000 != 0 { -1.0 } else { 1.0 };
        let (exponent, units) =
            (i32::from(bits & 0x7FFF) >> self.n_bits, i32::from(bits) & ((1 << self.n_bits) - 1));
        let hidden = if exponent == 0 { 0 } else { 1 << self.n_bits };
        if exponent == self.largest() {
            return if units == 0 { sign * f64::INFINITY } else { f64::NAN };
        }
        let scale = 2f64.powi(exponent.max(1) - 1 + self.smallest - self.n_bits);
        sign * f64::from(hidden + units) * scale
    }
}

/// e where 2ᵉ ≤ x < 2ᵉ⁺¹, for a normal number x.
fn exponent_of(x: f64) -> i32 {
    ((x.to_bits() >> 52) & 0x7FF) as i32 - 1023
}

#[test]
fn half_precision_is_that_of_ieee_754() {
    for (x, bits) in [
        (0.0, 0x0000),
        (-0.0, 0x8000),
        (1.0, 0x3C00),
        (-2.0, 0xC000),
        (65504.0, 0x7BFF),
        (65520.0, 0x7C00),
        (1e9, 0x7C00),
        (f32::NEG_INFINITY, 0xFC00),
        (6.103_515_6e-5, 0x0400),
        (5.960_464_5e-8, 0x0001),
        (1.0 / 3.0, 0x3555),
    ] {
        assert_eq!(Format::HALF.encode(x), bits, "{x} in half precision");
    }
}

#[test]
fn bf16_is_the_upper_half_of_single_precision() {
    for bits in 0..=u16::MAX {
        let wide = f32::from_bits(u32::from(bits) << 16);
        assert!(Format::BF16.decode(bits) == f64::from(wide) || wide.is_nan(), "{bits:x} as bf16");
    }
}

#[test]
fn the_element_types_have_these_formats() {
    for bits in 0..=u16::MAX {
        for (format, value) in [
            (Format::HALF, f64::from(f16::from_bits(bits))),
            (Format::BF16, f64::from(bf16::from_bits(bits))),
        ] {
            let expected = format.decode(bits);
            assert!(value == expected || value.is_nan() && expected.is_nan(), "{bits:x}: {value}");
            let encoded = format.encode(value as f32);
            assert!(value.is_nan() || encoded == bits, "{bits:x} of {format:?}: {encoded:x}");
        }
        let x = f32::from_bits(u32::from(bits) << 16 | u32::from(bits.rotate_left(5)));
        if !x.is_nan() {
            assert_eq!(f16::from_f32(x).to_bits(), Format::HALF.encode(x), "{x:e}");
            assert_eq!(bf16::from_f32(x).to_bits(), Format::BF16.encode(x), "{x:e}");
        }
    }
}
