//! The layer norm of a sum.

use crate::formats::Derivatives;
use crate::kit::{
    BF16, Done, Framed, Rng, SINGLE, Sum, assert_near, device, get, holes, is_dropped, put, sums,
    twice,
};
use latens_cuda::NormWeights;

pub(crate) const KERNELS: &[&str] = &["norm_of_sum", "norm_backward", "norm_backward_bf16"];

/// Rows and their lengths. Parts are of 16 rows, and of 256 columns at a time.
const SHAPES: &[(usize, usize)] = &[
    (1, 1),
    (1, 2),
    (5, 31),
    (17, 32),
    (40, 33),
    (9, 100),
    (33, 256),
    (20, 257),
    (15, 1_700),
    (3, 7_001),
    (600, 64),
];

/// Where bias, gain and offset lie among the weights, and how many of these there are.
fn layout(dim: usize) -> (NormWeights, [usize; 3], usize) {
    (NormWeights::new(2..2 + 3 * dim), [2, 2 + dim, 2 + 2 * dim], 5 + 3 * dim)
}

#[test]
fn rows_are_normalised() {
    let Some(device) = device() else { return };
    let mut rng = Rng::new(20);
    for (&(n, dim), (rate, seed)) in SHAPES.iter().zip([(0.0, 0), (0.3, 77)].into_iter().cycle()) {
        let what = format!("norm_of_sum: {n} rows of {dim}, dropping {rate}");
        let (a, b) = (rng.normals(n * dim), rng.normals(n * dim));
        let (of, [bias, gain, offset], n_weights) = layout(dim);
        let weights = rng.normals(n_weights);
        let (y, out, normalised, inverse) = twice(&what, || {
            let (a, mut b, weights) = (put(&device, &a), put(&device, &b), put(&device, &weights));
            let (mut out, mut normalised) = (holes(&device, n * dim), holes(&device, n * dim));
            let mut inverse = holes(&device, n);
            let kept = (&mut normalised.array, &mut inverse.array);
            let (summed, weights) = ((&a.array, &mut b.array), (&weights.array, &of));
            device.norm_of_sum(&mut out.array, kept, summed, weights, n, (rate, seed)).done(&what);
            let get_it = |array: &Framed<f32>| get(&device, &what, array);
            (get_it(&b), get_it(&out), get_it(&normalised), get_it(&inverse))
        });
        let scale = 1.0 / (1.0 - f64::from(rate));
        let unit = |at: usize| {
            let sum = Sum::of([b[at], weights[bias + at % dim]].map(f64::from)).times(scale);
            match sum.value > 0.0 && !is_dropped(seed, at, rate) {
                true => sum,
                false => Sum::default(),
            }
        };
        let ys: Vec<Sum> = (0..n * dim).map(unit).collect();
        assert_near(&format!("{what}, y"), &y, &ys, SINGLE);
        let (mut rows, mut x, mut outs) = (vec![], vec![], vec![]);
        for r in 0..n {
            let terms = |c: usize| [f64::from(a[r * dim + c]), ys[r * dim + c].value];
            let mean = (0..dim).map(|c| terms(c)[0] + terms(c)[1]).sum::<f64>() / dim as f64;
            let from_mean = |c: usize| {
                let mut sum = Sum::of([terms(c)[0], terms(c)[1], -mean]);
                sum.size += ys[r * dim + c].size;
                sum
            };
            let variance = (0..dim).map(|c| from_mean(c).value.powi(2)).sum::<f64>() / dim as f64;
            let inverse = 1.0 / (variance + 1e-5).sqrt();
            // Rounding of numbers that are large beside their deviation makes it less certain.
            let spread = (0..dim).map(|c| from_mean(c).size * inverse).fold(1.0, f64::max);
            rows.push(Sum { value: inverse, size: inverse * spread });
            for c in 0..dim {
                let mut value = from_mean(c).times(inverse);
                value.size += value.value.abs() * spread;
                x.push(value);
                let mut out = value.times(f64::from(weights[gain + c]));
                out += f64::from(weights[offset + c]);
                outs.push(out);
            }
        }
        assert_near(&format!("{what}, 1/deviation"), &inverse, &rows, SINGLE);
        assert_near(&format!("{what}, normalised"), &normalised, &x, SINGLE);
        assert_near(&format!("{what}, out"), &out, &outs, SINGLE);
    }
}

#[test]
fn derivatives_go_through_the_norm() {
    let Some(device) = device() else { return };
    let mut rng = Rng::new(21);
    for &(n, dim) in SHAPES.iter().chain(&[(0, 5)]) {
        let what = format!("norm_backward: {n} rows of {dim}");
        let (d_out, x, inverse) = (rng.normals(n * dim), rng.normals(n * dim), rng.positives(n));
        let y: Vec<f32> = (0..n * dim).map(|_| rng.normal().max(0.0)).collect();
        let (of, [bias, gain, offset], n_weights) = layout(dim);
        let (weights, before) = (rng.normals(n_weights), rng.normals(n_weights));
        let scale = 1.25f32;
        let backward = |d_z: &mut Derivatives| {
            let (d_out, x, y) = (put(&device, &d_out), put(&device, &x), put(&device, &y));
            let (inverse, mut d_sum) = (put(&device, &inverse), holes(&device, n * dim));
            let (weights, mut gradient) = (put(&device, &weights), put(&device, &before));
            let mut partial = device.zeros(0).done(&what);
            let (d_out, kept) = (&d_out.array, (&x.array, &inverse.array, &y.array));
            let learned = (&weights.array, &mut gradient.array, &of);
            let (d, rest) = (&mut d_sum.array, ((n, scale), &mut partial));
            match d_z {
                Derivatives::Single(d_z) => {
                    device.norm_backward((d, &mut d_z.array), d_out, kept, learned, rest.0, rest.1)
                }
                Derivatives::Bf16(d_z) => {
                    device.norm_backward((d, &mut d_z.array), d_out, kept, learned, rest.0, rest.1)
                }
            }
            .done(&what);
            (get(&device, &what, &d_sum), get(&device, &what, &gradient))
        };
        let (mut d_sums, mut d_zs, mut d_weights) = (vec![], vec![], sums(&before));
        for r in 0..n {
            let at = |c: usize| (f64::from(d_out[r * dim + c]), f64::from(x[r * dim + c]));
            let by_x = |c: usize| at(c).0 * f64::from(weights[gain + c]);
            let mean = Sum::of((0..dim).map(by_x)).times(1.0 / dim as f64);
            let slope = Sum::of((0..dim).map(|c| by_x(c) * at(c).1)).times(1.0 / dim as f64);
            for c in 0..dim {
                let (d, x) = at(c);
                d_weights[gain + c] += d * x;
                d_weights[offset + c] += d;
                let value = by_x(c) - mean.value - x * slope.value;
                let size = by_x(c).abs() + mean.size + x.abs() * slope.size;
                let by_sum = Sum { value, size }.times(f64::from(inverse[r]));
                let passed = if y[r * dim + c] > 0.0 { 1.25 } else { 0.0 };
                let by_z = by_sum.times(passed);
                d_weights[bias + c].value += by_z.value;
                d_weights[bias + c].size += by_z.size;
                d_sums.push(by_sum);
                d_zs.push(by_z);
            }
        }
        for (is_bf16, tolerance) in [(false, SINGLE), (true, BF16)] {
            let (d_z, (d_sum, gradient)) = twice(&what, || {
                let mut d_z = Derivatives::holes(&device, n * dim, is_bf16);
                let others = backward(&mut d_z);
                (d_z.get(&device, &what), others)
            });
            let what = format!("{what}, bf16 {is_bf16}");
            assert_near(&format!("{what}, d_sum"), &d_sum, &d_sums, SINGLE);
            assert_near(&format!("{what}, d_z"), &d_z, &d_zs, tolerance);
            assert_near(&format!("{what}, bias, gain and offset"), &gradient, &d_weights, SINGLE);
        }
    }
}
