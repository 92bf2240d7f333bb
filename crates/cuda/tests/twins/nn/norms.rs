//! The layer norm of a sum.

use crate::kit::{
    BF16, Done, Framed, HALF, Number, Rng, SINGLE, Sum, Tolerance, assert_near, device, get, holes,
    is_dropped, put, sums, twice,
};
use latens_cuda::{Derivative, Device, NormKept, NormWeights, bf16, f16};

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

/// Types of derivatives whose activations can be compared.
trait Rounds: Derivative<Activation: Number + Into<f64>> + Number + Into<f64> {
    fn activations(values: &[f32]) -> Vec<Self::Activation>;
}

impl Rounds for f32 {
    fn activations(values: &[f32]) -> Vec<f32> {
        values.to_vec()
    }
}

impl Rounds for bf16 {
    fn activations(values: &[f32]) -> Vec<f16> {
        values.iter().map(|&x| f16::from_f32(x)).collect()
    }
}

/// Random numbers that half precision does not round.
fn halves(n: usize, rng: &mut Rng) -> Vec<f32> {
    rng.normals(n).iter().map(|&x| f16::from_f32(x).to_f32()).collect()
}

/// Bits that tell which numbers of n rows are positive.
fn bits(is_positive: impl Fn(usize) -> bool, n: usize, dim: usize) -> Vec<u32> {
    let n_words = NormKept::<f32>::n_words(dim);
    let mut words = vec![0; n * n_words];
    for at in (0..n * dim).filter(|&at| is_positive(at)) {
        let (r, c) = (at / dim, at % dim);
        words[r * n_words + c / 128 * 4 + c % 4] |= 1 << (c % 128 / 4);
    }
    words
}

#[test]
fn sums_are_normalized() {
    let Some(device) = device(&["norm_of_sum", "norm_of_sum_half"]) else { return };
    let mut rng = Rng::new(20);
    for (&(n, dim), (rate, seed)) in SHAPES.iter().zip([(0.0, 0), (0.3, 77)].into_iter().cycle()) {
        let what = format!("norm_of_sum: {n} rows of {dim}, dropout {rate}");
        let (a, b) = (halves(n * dim, &mut rng), halves(n * dim, &mut rng));
        let (of, [bias, gain, offset], n_weights) = layout(dim);
        let weights = rng.normals(n_weights);
        let scale = 1.0 / (1.0 - f64::from(rate));
        let unit = |at: usize| {
            let sum = Sum::of([b[at], weights[bias + at % dim]].map(f64::from)).times(scale);
            match sum.value > 0.0 && !is_dropped(seed, at, rate) {
                true => sum,
                false => Sum::default(),
            }
        };
        let ys: Vec<Sum> = (0..n * dim).map(unit).collect();
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
        let inputs = (&a[..], &b[..], &weights[..]);
        let expected = [&rows[..], &x, &outs];
        let positive = bits(|at| ys[at].value > 0.0, n, dim);
        let sizes = (n, (rate, seed), &of);
        compare_norm::<f32>(&device, &what, sizes, inputs, (expected, &positive), SINGLE);
        let what = format!("{what}, half");
        compare_norm::<bf16>(&device, &what, sizes, inputs, (expected, &positive), HALF);
    }
}

/// Compares the norm and what it keeps for the backward pass.
fn compare_norm<T: Rounds>(
    device: &Device,
    what: &str,
    (n, dropout, of): (usize, (f32, u64), &NormWeights),
    (a, b, weights): (&[f32], &[f32], &[f32]),
    ([rows, x, outs], positive): ([&[Sum]; 3], &[u32]),
    tolerance: Tolerance,
) {
    let (got_bits, out, normalized, inverse) = twice(what, || {
        let (a, b) = (put(device, &T::activations(a)), put(device, &T::activations(b)));
        let (weights, mut out) = (put(device, weights), holes::<f32>(device, x.len()));
        let bits = put(device, &vec![u32::MAX; positive.len()]);
        let (normalized, inverse) = (holes::<T::Activation>(device, x.len()), holes(device, n));
        let ranges = (normalized.range, inverse.range, bits.range);
        let mut kept = NormKept::<T> {
            normalized: normalized.array,
            inverse_deviation: inverse.array,
            positive: bits.array,
        };
        let (summed, weights) = ((&a.array, &b.array), (&weights.array, of));
        device.norm_of_sum(&mut out.array, &mut kept, summed, weights, n, dropout).done(what);
        let NormKept { normalized, inverse_deviation, positive } = kept;
        (
            get(device, what, &Framed { array: positive, range: ranges.2 }),
            get(device, what, &out),
            get(device, what, &Framed { array: normalized, range: ranges.0 }),
            get(device, what, &Framed { array: inverse_deviation, range: ranges.1 }),
        )
    });
    assert_eq!(got_bits, positive, "{what}, y > 0");
    assert_near(&format!("{what}, 1/deviation"), &inverse, rows, SINGLE);
    assert_near(&format!("{what}, normalized"), &normalized, x, tolerance);
    assert_near(&format!("{what}, out"), &out, outs, SINGLE);
}

#[test]
fn derivatives_of_the_norm_agree_with_the_cpu() {
    let Some(device) = device(&["norm_backward", "norm_backward_bf16"]) else { return };
    let mut rng = Rng::new(21);
    for &(n, dim) in SHAPES.iter().chain(&[(0, 5)]) {
        let what = format!("norm_backward: {n} rows of {dim}");
        let (d_out, x) = (rng.normals(n * dim), halves(n * dim, &mut rng));
        let inverse = rng.positives(n);
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

/// Compares the derivatives with respect to the sum and to the input of the ReLU, and those of the weights.
fn compare<T: Rounds>(
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
        let [d_out, inverse, weights] = [d_out, inverse, weights].map(|values| put(device, values));
        let positive = bits(|at| y[at] > 0.0, n, x.len() / n.max(1));
        let kept = NormKept::<T> {
            normalized: put(device, &T::activations(x)).array,
            inverse_deviation: inverse.array,
            positive: put(device, &positive).array,
        };
        let (mut d_sum, mut d_z) = (holes(device, d_sums.len()), holes::<T>(device, d_zs.len()));
        let (mut gradient, mut partial) = (put(device, before), device.zeros(0).done(what));
        let learned = (&weights.array, &mut gradient.array, of);
        let out = (&mut d_sum.array, &mut d_z.array);
        let d_out = &d_out.array;
        device.norm_backward(out, d_out, &kept, learned, (n, scale), &mut partial).done(what);
        (get(device, what, &d_z), get(device, what, &d_sum), get(device, what, &gradient))
    });
    assert_near(&format!("{what}, d_sum"), &d_sum, d_sums, SINGLE);
    assert_near(&format!("{what}, d_z"), &d_z, d_zs, tolerance);
    assert_near(&format!("{what}, bias, gain and offset"), &gradient, d_weights, SINGLE);
}
