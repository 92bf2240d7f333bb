//! Matrix products.

use crate::kit::{
    BF16, Bits, Done, HALF, Rng, SINGLE, Sum, TF32, Tolerance, assert_near, device, framed, get,
    holes, product, put, twice,
};
use latens_cuda::{Precision, ProductShape, Transposed, bf16, f16};

/// n, m and k of products of n × k and k × m matrices.
const SIZES: &[(usize, usize, usize)] = &[
    (1, 1, 1),
    (3, 5, 7),
    (1, 300, 17),
    (200, 1, 31),
    (64, 64, 64),
    (65, 33, 129),
    (128, 8, 256),
    (31, 130, 400),
];

const WAYS: [Transposed; 2] = [Transposed::No, Transposed::Yes];

/// scale · before + A B in double precision. `before` is not read if `scale` is 0.
fn twin(
    sizes: (usize, usize, usize),
    (before, scale): (&[f32], f32),
    (a, of_a): (&[f32], Transposed),
    (b, of_b): (&[f32], Transposed),
) -> Vec<Sum> {
    let (n, m, k) = sizes;
    let place = |(r, c): (usize, usize), (n_rows, n_cols), way| match way {
        Transposed::No => r * n_cols + c,
        Transposed::Yes => c * n_rows + r,
    };
    let mut out = product(
        sizes,
        |r, i| a[place((r, i), (n, k), of_a)],
        |i, c| b[place((i, c), (k, m), of_b)],
    );
    if scale != 0.0 {
        for (out, &before) in out.iter_mut().zip(before) {
            *out += f64::from(scale) * f64::from(before);
        }
    }
    out
}

/// Compares products in single precision. `draw` generates the factors.
fn compare(precision: Precision, tolerance: Tolerance, draw: impl Fn(&mut Rng, usize) -> Vec<f32>) {
    let Some(device) = device(&[]) else { return };
    let mut rng = Rng::new(4);
    for &sizes in SIZES {
        for (of_a, of_b) in WAYS.into_iter().flat_map(|a| WAYS.map(|b| (a, b))) {
            for scale in [0.0f32, 1.0, 0.5] {
                let (n, m, k) = sizes;
                let what = format!(
                    "multiply {precision:?}: {n} x {k} ({of_a:?}) by {k} x {m} ({of_b:?}), {scale} of before"
                );
                let (a, b) = (draw(&mut rng, n * k), draw(&mut rng, k * m));
                let before =
                    if scale == 0.0 { vec![f32::NAN; n * m] } else { draw(&mut rng, n * m) };
                let got = twice(&what, || {
                    let (a, b) = (framed(&device, &a), framed(&device, &b));
                    let mut out = framed(&device, &before);
                    let a = (&a.array, a.range.clone(), of_a);
                    let b = (&b.array, b.range.clone(), of_b);
                    let factors = (a.clone(), b.clone());
                    let of = ProductShape { n, m, k };
                    device.multiply(out.part_mut(), scale, a, b, of, precision).done(&what);
                    let got = get(&device, &what, &out);
                    if precision == Precision::Full {
                        let (mut out, (a, b)) = (framed(&device, &before), factors);
                        device.multiply_as(out.part_mut(), scale, a, b, of).done(&what);
                        assert_eq!(got.bits(), get(&device, &what, &out).bits(), "{what}, as f32");
                    }
                    got
                });
                let expected = twin(sizes, (&before, scale), (&a, of_a), (&b, of_b));
                assert_near(&what, &got, &expected, tolerance);
            }
        }
    }
}

#[test]
fn products_agree_with_the_cpu() {
    compare(Precision::Full, SINGLE, Rng::normals);
}

#[test]
fn fast_products_agree_with_the_cpu() {
    compare(Precision::Fast, TF32, Rng::normals);
    // Factors with few bits are not rounded.
    compare(Precision::Fast, SINGLE, Rng::shorts);
}

#[test]
fn empty_products_write_nothing() {
    let Some(device) = device(&[]) else { return };
    let (a, mut out) = (put(&device, &[1.0f32; 12]), framed(&device, &[2.0f32; 4]));
    for (n, m) in [(0, 4), (4, 0)] {
        let (x, y) = ((&a.array, 0..12, Transposed::No), (&a.array, 0..12, Transposed::No));
        device
            .multiply(out.part_mut(), 0.0, x, y, ProductShape { n, m, k: 3 }, Precision::Full)
            .done("multiply");
        assert_eq!(get(&device, "empty product", &out), [2.0; 4]);
    }
}

#[test]
fn products_of_16_bit_numbers_agree_with_the_cpu() {
    let Some(device) = device(&[]) else { return };
    let mut rng = Rng::new(5);
    for &sizes in SIZES {
        for (of_a, of_b) in WAYS.into_iter().flat_map(|a| WAYS.map(|b| (a, b))) {
            let (n, m, k) = sizes;
            let of = ProductShape { n, m, k };
            let shape = format!("{n} x {k} ({of_a:?}) by {k} x {m} ({of_b:?})");
            let (a, b) = (rng.shorts(n * k), rng.shorts(k * m));
            for scale in [0.0f32, 1.0, 0.5] {
                let what = format!("multiply_as: {shape}, {scale} of before");
                let before = if scale == 0.0 { vec![f32::NAN; n * m] } else { rng.shorts(n * m) };
                let got = twice(&what, || {
                    let [x, y] = [&a, &b].map(|values| {
                        let narrow: Vec<_> = values.iter().map(|&x| bf16::from_f32(x)).collect();
                        put(&device, &narrow)
                    });
                    let (x, y) = ((&x.array, x.range, of_a), (&y.array, y.range, of_b));
                    let mut out = framed(&device, &before);
                    device.multiply_as(out.part_mut(), scale, x, y, of).done(&what);
                    get(&device, &what, &out)
                });
                let expected = twin(sizes, (&before, scale), (&a, of_a), (&b, of_b));
                assert_near(&what, &got, &expected, SINGLE);
            }
            let half = format!("multiply_within: {shape}");
            let narrow = twice(&half, || {
                let [x, y] = [&a, &b].map(|values| {
                    let narrow: Vec<_> = values.iter().map(|&x| f16::from_f32(x)).collect();
                    put(&device, &narrow)
                });
                let (x, y) = ((&x.array, x.range, of_a), (&y.array, y.range, of_b));
                let mut out = holes::<f16>(&device, n * m);
                device.multiply_within(out.part_mut(), x, y, of).done(&half);
                get(&device, &half, &out)
            });
            let expected = twin(sizes, (&[], 0.0), (&a, of_a), (&b, of_b));
            // cuBLAS may add parts of a long sum in half precision.
            let tolerance = if k <= 64 { HALF } else { BF16 };
            assert_near(&half, &narrow, &expected, tolerance);
        }
    }
}
