//! The layer norm.

use crate::kit::{
    Done, Framed, Rng, SINGLE, Sum, assert_near, device, get, holes, put, sums, twice,
};
use latens_cuda::MAX_DIM;
use std::ops::Range;

pub(crate) const KERNELS: &[&str] = &["norm_of_sum", "norm_backward"];

/// Rows and their lengths. Parts are of 16 rows; eight warps of a part have room for sums of 768 columns, and fewer of
/// longer ones.
const SHAPES: &[(usize, usize)] = &[
    (1, 1),
    (1, 2),
    (5, 31),
    (17, 32),
    (40, 33),
    (9, 100),
    (33, 768),
    (20, 769),
    (15, 1_700),
    (3, MAX_DIM),
    (600, 64),
];

/// Where gain and offset lie among the weights: not side by side, nor at the beginning.
fn layout(dim: usize) -> (Range<usize>, Range<usize>, usize) {
    (2..2 + dim, 5 + dim..5 + 2 * dim, 6 + 2 * dim)
}

#[test]
fn rows_are_normalised() {
    let Some(device) = device() else { return };
    let mut rng = Rng::new(20);
    for &(n, dim) in SHAPES {
        let what = format!("norm_of_sum: {n} rows of {dim}");
        let (a, b) = (rng.normals(n * dim), rng.normals(n * dim));
        let (gain, offset, n_weights) = layout(dim);
        let weights = rng.normals(n_weights);
        let (out, normalised, inverse) = twice(&what, || {
            let (a, b, weights) = (put(&device, &a), put(&device, &b), put(&device, &weights));
            let (mut out, mut normalised) = (holes(&device, n * dim), holes(&device, n * dim));
            let mut inverse = holes(&device, n);
            let kept = (&mut normalised.array, &mut inverse.array);
            let weights = (&weights.array, gain.clone(), offset.clone());
            device.norm_of_sum(&mut out.array, kept, (&a.array, &b.array), weights, n).done(&what);
            let get_it = |array: &Framed<f32>| get(&device, &what, array);
            (get_it(&out), get_it(&normalised), get_it(&inverse))
        });
        let (mut rows, mut x, mut outs) = (vec![], vec![], vec![]);
        for r in 0..n {
            let terms = |c: usize| [a[r * dim + c], b[r * dim + c]].map(f64::from);
            let mean = (0..dim).map(|c| terms(c)[0] + terms(c)[1]).sum::<f64>() / dim as f64;
            let from_mean = |c: usize| Sum::of([terms(c)[0], terms(c)[1], -mean]);
            let variance = (0..dim).map(|c| from_mean(c).value.powi(2)).sum::<f64>() / dim as f64;
            let inverse = 1.0 / (variance + 1e-5).sqrt();
            // Rounding of numbers that are large beside their deviation makes it less certain.
            let spread = (0..dim).map(|c| from_mean(c).size * inverse).fold(1.0, f64::max);
            rows.push(Sum { value: inverse, size: inverse * spread });
            for c in 0..dim {
                let mut value = from_mean(c).times(inverse);
                value.size += value.value.abs() * spread;
                x.push(value);
                let mut out = value.times(f64::from(weights[gain.start + c]));
                out += f64::from(weights[offset.start + c]);
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
        let (d_y, x, inverse) = (rng.normals(n * dim), rng.normals(n * dim), rng.positives(n));
        let (gain, offset, n_weights) = layout(dim);
        let (weights, before) = (rng.normals(n_weights), rng.normals(n_weights));
        let (d_x, gradient) = twice(&what, || {
            let (d_y, x, inverse) = (put(&device, &d_y), put(&device, &x), put(&device, &inverse));
            let (weights, mut gradient) = (put(&device, &weights), put(&device, &before));
            let (mut d_x, mut partial) = (holes(&device, n * dim), device.zeros(0).done(&what));
            let learned = (&weights.array, &mut gradient.array, gain.clone(), offset.clone());
            let kept = (&x.array, &inverse.array);
            device
                .norm_backward(&mut d_x.array, &d_y.array, kept, learned, n, &mut partial)
                .done(&what);
            (get(&device, &what, &d_x), get(&device, &what, &gradient))
        });
        let (mut d_xs, mut d_weights) = (vec![], sums(&before));
        for r in 0..n {
            let at = |c: usize| (f64::from(d_y[r * dim + c]), f64::from(x[r * dim + c]));
            let by_x = |c: usize| at(c).0 * f64::from(weights[gain.start + c]);
            let mean = Sum::of((0..dim).map(by_x)).times(1.0 / dim as f64);
            let slope = Sum::of((0..dim).map(|c| by_x(c) * at(c).1)).times(1.0 / dim as f64);
            for c in 0..dim {
                let (d, x) = at(c);
                d_weights[gain.start + c] += d * x;
                d_weights[offset.start + c] += d;
                let value = by_x(c) - mean.value - x * slope.value;
                let size = by_x(c).abs() + mean.size + x.abs() * slope.size;
                d_xs.push(Sum { value, size }.times(f64::from(inverse[r])));
            }
        }
        assert_near(&format!("{what}, d_x"), &d_x, &d_xs, SINGLE);
        assert_near(&format!("{what}, gain and offset"), &gradient, &d_weights, SINGLE);
    }
}
