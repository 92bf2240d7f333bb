//! The layer norm of a sum.

use crate::kit::{
    BF16, Done, Framed, Number, Rng, SINGLE, Sum, Tolerance, assert_near, device, get, holes,
    is_dropped, put, sums, twice,
};
use latens_cuda::{Derivative, Device, NormWeights, bf16};

/// Number of rows and their length. Parts have 16 rows, and tiles 256 columns.
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

/// The weights of a norm, the first indices of bias, gain and offset, and the number of all weights.
fn layout(dim: usize) -> (NormWeights, [usize; 3], usize) {
    (NormWeights::new(2..2 + 3 * dim), [2, 2 + dim, 2 + 2 * dim], 5 + 3 * dim)
}

#[test]
fn sums_are_normalized() {
    let Some(device) = device(&["norm_of_sum"]) else { return };
    let mut rng = Rng::new(20);
    for (&(n, dim), (rate, seed)) in SHAPES.iter().zip([(0.0, 0), (0.3, 77)].into_iter().cycle()) {
        let what = format!("norm_of_sum: {n} rows of {dim}, dropout {rate}");
        let (a, b) = (rng.normals(n * dim), rng.normals(n * dim));
        let (of, [bias, gain, offset], n_weights) = layout(dim);
        let weights = rng.normals(n_weights);
        let (y, out, normalized, inverse) = twice(&what, || {
            let (a, mut b, weights) = (put(&device, &a), put(&device, &b), put(&device, &weights));
            let (mut out, mut normalized) = (holes(&device, n * dim), holes(&device, n * dim));
            let mut inverse = holes(&device, n);
            let kept = (&mut normalized.array, &mut inverse.array);
            let (summed, weights) = ((&a.array, &mut b.array), (&weights.array, &of));
            device.norm_of_sum(&mut out.array, kept, summed, weights, n, (rate, seed)).done(&what);
            let get_it = |array: &Framed<f32>| get(&device, &what, array);
            (get_it(&b), get_it(&out), get_it(&normalized), get_it(&inverse))
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
            // The deviation loses precision if the numbers are large compared to it.
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
        assert_near(&format!("{what}, normalized"), &normalized, &x, SINGLE);
        assert_near(&format!("{what}, out"), &out, &outs, SINGLE);
    }
}

#[test]
fn derivatives_of_the_norm_agree_with_the_cpu() {
    let Some(device) = device(&["norm_backward", "norm_backward_bf16"]) else { return };
    let mut rng = Rng::new(21);
    for &(n, dim) in SHAPES.iter().chain(&[(0, 5)]) {
        let what = format!("norm_backward: {n} rows of {dim}");
        let (d_out, x, inverse) = (rng.normals(n * dim), rng.normals(n * dim), rng.positives(n));
        let y: Vec<f32> = (0..n * dim).map(|_| rng.normal().max(0.0)).collect();
        let (of, [bias, gain, offset], n_weights) = layout(dim);
        let (weights, before) = (rng.normals(n_weights), rng.normals(n_weights));
        let scale = 1.25f32;
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
        let inputs = Inputs { d_out: &d_out, x: &x, inverse: &inverse, y: &y, weights: &weights };
        let expected = [&d_sums[..], &d_zs, &d_weights];
        let sizes = (n, scale, &of);
        compare::<f32>(&device, &what, sizes, &inputs, &before, expected, SINGLE);
        let what = format!("{what}, bf16");
        compare::<bf16>(&device, &what, sizes, &inputs, &before, expected, BF16);
    }
}

/// Inputs of the backward pass.
struct Inputs<'a> {
    d_out: &'a [f32],
    x: &'a [f32],
    inverse: &'a [f32],
    y: &'a [f32],
    weights: &'a [f32],
}

/// Compares the derivatives by the sum and by the input of the ReLU, and those of the weights.
fn compare<T: Derivative + Number + Into<f64>>(
    device: &Device,
    what: &str,
    (n, scale, of): (usize, f32, &NormWeights),
    inputs: &Inputs<'_>,
    before: &[f32],
    [d_sums, d_zs, d_weights]: [&[Sum]; 3],
    tolerance: Tolerance,
) {
    let (d_z, d_sum, gradient) = twice(what, || {
        let Inputs { d_out, x, inverse, y, weights } = inputs;
        let [d_out, x, inverse, y, weights] =
            [d_out, x, inverse, y, weights].map(|values| put(device, values));
        let (mut d_sum, mut d_z) = (holes(device, d_sums.len()), holes::<T>(device, d_zs.len()));
        let (mut gradient, mut partial) = (put(device, before), device.zeros(0).done(what));
        let kept = (&x.array, &inverse.array, &y.array);
        let learned = (&weights.array, &mut gradient.array, of);
        let out = (&mut d_sum.array, &mut d_z.array);
        device.norm_backward(out, &d_out.array, kept, learned, (n, scale), &mut partial).done(what);
        (get(device, what, &d_z), get(device, what, &d_sum), get(device, what, &gradient))
    });
    assert_near(&format!("{what}, d_sum"), &d_sum, d_sums, SINGLE);
    assert_near(&format!("{what}, d_z"), &d_z, d_zs, tolerance);
    assert_near(&format!("{what}, bias, gain and offset"), &gradient, d_weights, SINGLE);
}
