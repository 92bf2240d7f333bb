//! Conversions to 16-bit formats.

use crate::kit::{
    Done, Format, Number, Rng, WIDE, WIDE_FOURS, device, framed, get, holes, put, twice,
};
use latens_cuda::Shape;

/// Numbers of all magnitudes, and those at which the direction of rounding changes.
fn all_magnitudes(n: usize, rng: &mut Rng) -> Vec<f32> {
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

/// Panics unless the bits are those of the rounded numbers.
fn assert_bits<T: Number>(what: &str, format: Format, got: &[T], x: &[f32]) {
    assert_eq!(got.len(), x.len(), "{what}");
    for (i, (&got, &x)) in got.iter().zip(x).enumerate() {
        let (got, expected) = (got.raw() as u16, format.encode(x));
        let is_same = if x.is_nan() { format.decode(got).is_nan() } else { got == expected };
        assert!(is_same, "{what}: expected {expected:x} for {x:e} at {i}, got {got:x}");
    }
}

#[test]
fn numbers_are_rounded_to_the_nearest() {
    let Some(device) = device(&["to_half", "to_bf16", "to_half_and_bf16"]) else { return };
    let mut rng = Rng::new(1);
    for n in [0, 1, 31, 1_000, WIDE.0 * WIDE.1, WIDE_FOURS.0 * WIDE_FOURS.1] {
        let x = all_magnitudes(n, &mut rng);
        let half = format!("to_half: {n} numbers");
        let bf16 = format!("to_bf16: {n} numbers");
        let (a, b) = twice(&bf16, || {
            let (x, mut a, mut b) = (put(&device, &x), holes(&device, n), holes(&device, n));
            device.to_half(&mut a.array, x.part()).done(&half);
            device.to_bf16(&mut b.array, x.part()).done(&bf16);
            (get(&device, &half, &a), get(&device, &bf16, &b))
        });
        assert_bits(&half, Format::HALF, &a, &x);
        assert_bits(&bf16, Format::BF16, &b, &x);
        // Not aligned for reads of four numbers at a time.
        let what = format!("to_bf16: {n} numbers from the middle of an array");
        let got = twice(&what, || {
            let (x, mut out) = (framed(&device, &x), holes(&device, n));
            device.to_bf16(&mut out.array, x.part()).done(&what);
            get(&device, &what, &out)
        });
        assert_bits(&what, Format::BF16, &got, &x);
        for at in [put, framed] {
            let what = format!("to_half_and_bf16: {n} numbers");
            let (a, b) = twice(&what, || {
                let (x, mut a, mut b) = (at(&device, &x), holes(&device, n), holes(&device, n));
                let out = (&mut a.array, &mut b.array);
                device.to_half_and_bf16(out, x.part()).done(&what);
                (get(&device, &what, &a), get(&device, &what, &b))
            });
            assert_bits(&what, Format::HALF, &a, &x);
            assert_bits(&what, Format::BF16, &b, &x);
        }
    }
}

#[test]
fn rows_are_scaled_before_they_are_rounded() {
    let Some(device) = device(&["scaled_to_bf16"]) else { return };
    let mut rng = Rng::new(2);
    for (n, dim) in [(0, 3), (1, 1), (7, 5), (33, 64), WIDE, WIDE_FOURS] {
        let what = format!("scaled_to_bf16: {n} rows of {dim}");
        let (x, factors) = (rng.normals(n * dim), rng.normals(n));
        let got = twice(&what, || {
            let (x, factors) = (put(&device, &x), put(&device, &factors));
            let mut out = holes(&device, n * dim);
            let shape = Shape { rows: n, columns: dim };
            device.scaled_to_bf16(&mut out.array, &x.array, &factors.array, shape).done(&what);
            get(&device, &what, &out)
        });
        let scaled: Vec<f32> = (0..n * dim).map(|at| factors[at / dim] * x[at]).collect();
        assert_bits(&what, Format::BF16, &got, &scaled);
    }
}
