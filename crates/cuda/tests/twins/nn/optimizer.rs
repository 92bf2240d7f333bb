//! Steps of AdamW and plain SGD with gradient clipping.

use crate::kit::{
    DOUBLE, Done, ROUNDED, Rng, SINGLE, Sum, Tolerance, WIDE, WIDE_FOURS, assert_near, device, put,
    sums, twice,
};
use latens_cuda::{AdamWStep, Array, Device, StepResult};

/// The factor of a gradient: −`per_token`, scaled so that the norm is at most `clip`.
fn scale(gradient: &[f32], per_token: f64, clip: f64) -> f64 {
    let norm = gradient.iter().map(|&g| f64::from(g).powi(2)).sum::<f64>().sqrt() * per_token;
    -per_token * if norm > clip { clip / norm } else { 1.0 }
}

/// The result of a step with these values of ln p.
fn result_of(
    device: &Device,
    what: &str,
    (gradient, log_probs): (&Array<f32>, &[f64]),
    limits: (f64, f64),
) -> StepResult {
    let mut result = StepResult::new(device).done(what);
    let (array, n) = (put(device, log_probs).array, log_probs.len());
    device.step_scale(&mut result, gradient, (&array, n), limits).done(what);
    result
}

/// Number of weights and sentences, and a clipping norm that is far away or exceeded. Squares are summed by 512 blocks of
/// 256 threads.
const SHAPES: &[(usize, usize, f64)] = &[
    (1, 1, 1e9),
    (7, 0, 1e-3),
    (255, 511, 1e-3),
    (1_000, 512, 1e9),
    (131_079, 513, 1e-3),
    (WIDE.0 * WIDE.1, 2_000, 0.1),
    (WIDE_FOURS.0 * WIDE_FOURS.1 + 3, 9, 0.1),
];

#[test]
fn averages_agree_with_the_cpu() {
    let Some(device) = device(&["average"]) else { return };
    let mut rng = Rng::new(93);
    for n in [1, 255, WIDE.0 * WIDE.1] {
        let what = format!("average: {n} weights");
        let (mean, weights) = (rng.normals(n), rng.normals(n));
        let got = twice(&what, || {
            let mut mean = device.upload(&mean).done(&what);
            let weights = device.upload(&weights).done(&what);
            device.average(&mut mean, &weights, 0.25).done(&what);
            device.download(&mean).done(&what)
        });
        let sum = |i: usize| Sum::of([0.75 * f64::from(mean[i]), 0.25 * f64::from(weights[i])]);
        let expected: Vec<Sum> = (0..n).map(sum).collect();
        assert_near(&what, &got, &expected, SINGLE);
    }
}

#[test]
fn steps_of_sgd_agree_with_the_cpu() {
    let Some(device) = device(&["square_sums", "step_scale", "sgd"]) else { return };
    let mut rng = Rng::new(90);
    for &(n, n_sentences, clip) in SHAPES {
        let what = format!("step_scale and sgd: {n} weights, {n_sentences} sentences, norm {clip}");
        let (weights, gradient) = (rng.normals(n), rng.normals(n));
        let log_probs: Vec<f64> = (0..n_sentences).map(|_| -100.0 * rng.uniform()).collect();
        let (per_token, rate) = (1.0 / 37.0, 0.3);
        let (got, log_prob) = twice(&what, || {
            let mut weights = device.upload(&weights).done(&what);
            let gradient = device.upload(&gradient).done(&what);
            let result = result_of(&device, &what, (&gradient, &log_probs), (per_token, clip));
            device.sgd(&mut weights, &gradient, &result, rate).done(&what);
            let log_prob = result.log_prob(&device).done(&what);
            (device.download(&weights).done(&what), log_prob)
        });
        let expected = Sum::of(log_probs.iter().copied());
        assert_near(&format!("{what}, ln p"), &[log_prob], &[expected], DOUBLE);
        let factor = scale(&gradient, per_token, clip) * rate;
        let after = |i: usize| Sum::of([f64::from(weights[i]), -factor * f64::from(gradient[i])]);
        let expected: Vec<Sum> = (0..n).map(after).collect();
        assert_near(&format!("{what}, weights"), &got, &expected, ROUNDED);
    }
}

#[test]
fn gradient_clipping_agrees_with_the_cpu() {
    let Some(device) = device(&["step_scale"]) else { return };
    let mut rng = Rng::new(91);
    for &(n, n_sentences, clip) in SHAPES {
        let what = format!("step_scale: {n} derivatives, {n_sentences} sentences, norm {clip}");
        let (gradient, log_probs) = (rng.normals(n), vec![-1.0; n_sentences]);
        let got = twice(&what, || {
            // The weights start at 0, so they become the step.
            let mut weights = device.zeros(n).done(&what);
            let gradient = device.upload(&gradient).done(&what);
            let result = result_of(&device, &what, (&gradient, &log_probs), (0.25, clip));
            device.sgd(&mut weights, &gradient, &result, 1.0).done(&what);
            device.download(&weights).done(&what)
        });
        let factor = -scale(&gradient, 0.25, clip);
        let expected: Vec<Sum> = gradient.iter().map(|&g| (factor * f64::from(g)).into()).collect();
        assert_near(&what, &got, &expected, ROUNDED);
    }
}

/// Weights, and running means of derivatives and of their squares, in double precision.
#[derive(Debug)]
struct Twin {
    weights: Vec<Sum>,
    mean: Vec<Sum>,
    square: Vec<Sum>,
}

impl Twin {
    /// Loshchilov and Hutter (2019), algorithm 2, with the constants of the step.
    fn step(&mut self, gradient: &[f32], factor: f64, step: &AdamWStep) {
        let (beta_1, beta_2) = step.betas;
        for (i, &g) in gradient.iter().enumerate() {
            let g = f64::from(g) * factor;
            self.mean[i] = self.mean[i].times(beta_1);
            self.mean[i] += (1.0 - beta_1) * g;
            self.square[i] = self.square[i].times(beta_2);
            self.square[i] += (1.0 - beta_2) * g * g;
            let root = self.square[i].value.sqrt() * step.root_scale + step.epsilon;
            let change = self.mean[i].times(-step.rate / root);
            let weight = &mut self.weights[i];
            *weight = weight.times(step.kept);
            *weight = Sum { value: weight.value + change.value, size: weight.size + change.size };
        }
    }
}

#[test]
fn steps_of_adamw_agree_with_the_cpu() {
    let Some(device) = device(&["adamw"]) else { return };
    let mut rng = Rng::new(92);
    for &(n, n_sentences, clip) in SHAPES {
        let what = format!("adamw: {n} weights, {n_sentences} sentences, norm {clip}");
        let start = rng.normals(n);
        let gradients: Vec<Vec<f32>> = (0..3).map(|_| rng.normals(n)).collect();
        let log_probs = vec![-2.0; n_sentences];
        let (betas, learning_rate): ((f64, f64), f64) = ((0.9, 0.98), 0.01);
        let step_of = |t: i32| AdamWStep {
            betas,
            epsilon: 1e-8,
            kept: 1.0 - learning_rate * 0.1,
            rate: learning_rate / (1.0 - betas.0.powi(t)),
            root_scale: 1.0 / (1.0 - betas.1.powi(t)).sqrt(),
        };
        let (weights, mean, square) = twice(&what, || {
            let mut weights = device.upload(&start).done(&what);
            let (mut mean, mut square) = (device.zeros(n).done(&what), device.zeros(n).done(&what));
            for (t, gradient) in (1..).zip(&gradients) {
                let gradient = device.upload(gradient).done(&what);
                let result = result_of(&device, &what, (&gradient, &log_probs), (0.25, clip));
                let learned = (&mut weights, &mut mean, &mut square);
                device.adamw(learned, &gradient, &result, &step_of(t)).done(&what);
            }
            let get = |array: &Array<f32>| device.download(array).done(&what);
            (get(&weights), get(&mean), get(&square))
        });
        let nothing = vec![Sum::default(); n];
        let mut twin = Twin { weights: sums(&start), mean: nothing.clone(), square: nothing };
        for (t, gradient) in (1..).zip(&gradients) {
            twin.step(gradient, scale(gradient, 0.25, clip), &step_of(t));
        }
        assert_near(&format!("{what}, mean"), &mean, &twin.mean, SINGLE);
        assert_near(&format!("{what}, square"), &square, &twin.square, SINGLE);
        // Weights of about 1 change by about 0.01, so an error in the step shows up.
        let tolerance = Tolerance { of_value: 0.0, of_terms: 2e-6 };
        assert_near(&format!("{what}, weights"), &weights, &twin.weights, tolerance);
    }
}

#[test]
fn steps_with_nan_or_infinity_change_nothing() {
    let Some(device) = device(&["step_scale"]) else { return };
    let mut rng = Rng::new(93);
    let (n, start) = (300, rng.normals(300));
    let step =
        AdamWStep { betas: (0.9, 0.999), epsilon: 1e-8, kept: 0.9, rate: 0.1, root_scale: 1.0 };
    for (derivative, log_prob) in
        [(f32::NAN, -1.0), (f32::INFINITY, -1.0), (1.0, f64::NEG_INFINITY), (1.0, f64::NAN)]
    {
        let what = format!("a step with {derivative} in the gradient and ln p of {log_prob}");
        let mut gradient = rng.normals(n);
        gradient[n - 1] = derivative;
        let gradient = device.upload(&gradient).done(&what);
        let result = result_of(&device, &what, (&gradient, &[-3.0, log_prob]), (1.0, 1.0));
        assert!(result.log_prob(&device).done(&what).is_nan(), "{what}: ln p is not NaN");
        let mut arrays = [(); 3].map(|()| device.upload(&start).done(&what));
        let [weights, mean, square] = &mut arrays;
        device.sgd(weights, &gradient, &result, 0.5).done(&what);
        device.adamw((weights, mean, square), &gradient, &result, &step).done(&what);
        for array in &arrays {
            assert_eq!(device.download(array).done(&what), start, "{what}");
        }
    }
}
