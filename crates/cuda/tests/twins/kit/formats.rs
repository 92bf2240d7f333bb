//! Numbers of 16 bits.

use crate::kit::{Done, Framed, Rng, WIDE, WIDE_FOURS, device, framed, get, holes, put, twice};
use latens_cuda::Device;

pub(crate) const KERNELS: &[&str] = &["to_half", "to_bf16", "scaled_to_bf16"];

/// A format of 16 bits: how many of the significand are written, and the smallest exponent of a normal number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    n_bits: i32,
    smallest: i32,
}

pub(crate) const HALF: Format = Format { n_bits: 10, smallest: -14 };
pub(crate) const BF16: Format = Format { n_bits: 7, smallest: -126 };

impl Format {
    /// The exponent, as it is written, of what is infinite or no number.
    fn largest(self) -> i32 {
        3 - 2 * self.smallest
    }

    /// The nearest number, the even one of two: how many units of the last place there are.
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
        // The unit that is too many of the largest exponent makes it infinite.
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

    pub(crate) fn encode_all(self, values: &[f32]) -> Vec<u16> {
        values.iter().map(|&x| self.encode(x)).collect()
    }

    pub(crate) fn decode_all(self, values: &[u16]) -> Vec<f64> {
        values.iter().map(|&x| self.decode(x)).collect()
    }
}

/// e where 2ᵉ ≤ x < 2ᵉ⁺¹, of a normal number in double precision.
fn exponent_of(x: f64) -> i32 {
    ((x.to_bits() >> 52) & 0x7FF) as i32 - 1023
}

#[test]
fn formats_are_those_of_the_standards() {
    // IEEE 754-2019, binary16; bf16 is the upper half of binary32.
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
        assert_eq!(HALF.encode(x), bits, "{x} in half precision");
    }
    for bits in 0..=u16::MAX {
        let wide = f32::from_bits(u32::from(bits) << 16);
        assert!(BF16.decode(bits) == f64::from(wide) || wide.is_nan(), "{bits:x} as bf16");
        for format in [HALF, BF16] {
            let value = format.decode(bits);
            assert!(
                value.is_nan() || format.encode(value as f32) == bits,
                "{bits:x} of {format:?}"
            );
        }
    }
}

/// Numbers of all sizes, and those at which rounding goes either way.
fn all_sizes(n: usize, rng: &mut Rng) -> Vec<f32> {
    let special = [
        0.0,
        -0.0,
        1.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MAX,
        f32::NAN,
        65504.0,
        65519.9,
        65520.0,
        6.2e-5,
        3e-8,
        2.980_232_2e-8,
        1e-30,
        // Half way between two numbers of bf16, and of half precision; then a little more and less.
        f32::from_bits(0x3F80_8000),
        f32::from_bits(0x3F81_8000),
        f32::from_bits(0x3F80_8001),
        f32::from_bits(0x3F80_7FFF),
        f32::from_bits(0x3F80_1000),
        f32::from_bits(0x3F80_3000),
        f32::from_bits(0x3F80_1001),
        f32::from_bits(0x3F80_0FFF),
    ];
    let mut drawn = |i: usize| match special.get(i) {
        Some(&x) => x,
        None => rng.normal() * 2f32.powi(rng.below(60) as i32 - 40),
    };
    (0..n).map(&mut drawn).collect()
}

/// Derivatives on the device, of either kind.
pub(crate) enum Derivatives {
    Single(Framed<f32>),
    Bf16(Framed<u16>),
}

impl Derivatives {
    /// Room for n of them.
    pub(crate) fn holes(device: &Device, n: usize, is_bf16: bool) -> Derivatives {
        match is_bf16 {
            false => Derivatives::Single(holes(device, n)),
            true => Derivatives::Bf16(holes(device, n)),
        }
    }

    pub(crate) fn get(&self, device: &Device, what: &str) -> Vec<f32> {
        match self {
            Derivatives::Single(array) => get(device, what, array),
            Derivatives::Bf16(array) => {
                BF16.decode_all(&get(device, what, array)).into_iter().map(|x| x as f32).collect()
            }
        }
    }
}

fn assert_bits(what: &str, format: Format, got: &[u16], x: &[f32]) {
    assert_eq!(got.len(), x.len(), "{what}");
    for (i, (&got, &x)) in got.iter().zip(x).enumerate() {
        let expected = format.encode(x);
        let is_same = if x.is_nan() { format.decode(got).is_nan() } else { got == expected };
        assert!(is_same, "{what}: expected {expected:x} for {x:e} at {i}, got {got:x}");
    }
}

#[test]
fn numbers_are_rounded_to_the_nearest() {
    let Some(device) = device() else { return };
    let mut rng = Rng::new(1);
    for n in [0, 1, 31, 1_000, WIDE.0 * WIDE.1, WIDE_FOURS.0 * WIDE_FOURS.1] {
        let x = all_sizes(n, &mut rng);
        let half = format!("to_half: {n} numbers");
        let bf16 = format!("to_bf16: {n} numbers");
        let (a, b) = twice(&bf16, || {
            let (x, mut a, mut b) = (put(&device, &x), holes(&device, n), holes(&device, n));
            device.to_half(&mut a.array, &x.array, n).done(&half);
            device.to_bf16(&mut b.array, x.part()).done(&bf16);
            (get(&device, &half, &a), get(&device, &bf16, &b))
        });
        assert_bits(&half, HALF, &a, &x);
        assert_bits(&bf16, BF16, &b, &x);
        // Not where four can be read at a time.
        let what = format!("to_bf16: {n} numbers from the middle of an array");
        let got = twice(&what, || {
            let (x, mut out) = (framed(&device, &x), holes(&device, n));
            device.to_bf16(&mut out.array, x.part()).done(&what);
            get(&device, &what, &out)
        });
        assert_bits(&what, BF16, &got, &x);
    }
}

#[test]
fn rows_are_scaled_before_they_are_rounded() {
    let Some(device) = device() else { return };
    let mut rng = Rng::new(2);
    for (n, dim) in [(0, 3), (1, 1), (7, 5), (33, 64), WIDE, WIDE_FOURS] {
        let what = format!("scaled_to_bf16: {n} rows of {dim}");
        let (x, factors) = (rng.normals(n * dim), rng.normals(n));
        let got = twice(&what, || {
            let (x, factors) = (put(&device, &x), put(&device, &factors));
            let mut out = holes(&device, n * dim);
            let sizes = (n, dim);
            device.scaled_to_bf16(&mut out.array, &x.array, &factors.array, sizes).done(&what);
            get(&device, &what, &out)
        });
        let scaled: Vec<f32> = (0..n * dim).map(|at| factors[at / dim] * x[at]).collect();
        assert_bits(&what, BF16, &got, &scaled);
    }
}
