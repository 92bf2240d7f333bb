//! Checks for every layer: gradients against finite differences, single against double precision, and identical bits for
//! any number of threads.

use crate::check::assert_gradient;
use crate::tensors::Buffer;
use crate::tensors::fill_uniform;
use latens_math::linalg::Par;
use latens_math::{Real, Rng};

/// A layer applied to an input of a given shape.
pub(crate) trait LayerCase: Sync {
    /// Numbers of weights, input values and output values.
    fn sizes(&self) -> [usize; 3];

    /// Runs a forward pass, and a backward pass from ∂L/∂y = `d_out`.
    fn run<T: Real>(&self, weights: &[T], x: &[T], d_out: &[T], par: Par) -> Outcome<T>;
}

/// The output of a layer and the gradients.
#[derive(Debug, PartialEq)]
pub(crate) struct Outcome<T> {
    pub(crate) out: Vec<T>,
    pub(crate) gradient: Vec<T>,
    pub(crate) d_x: Vec<T>,
}

impl<T: Real> Outcome<T> {
    /// Creates an outcome with gradients of zero.
    pub(crate) fn new(case: &impl LayerCase, out: &[T]) -> Outcome<T> {
        let [n_weights, n_in, _] = case.sizes();
        let (gradient, d_x) = (vec![T::zero(); n_weights], vec![T::zero(); n_in]);
        Outcome { out: out.to_vec(), gradient, d_x }
    }
}

/// Creates a matrix from values in row-major order.
pub(crate) fn buffer<T: Real>(values: &[T], n_rows: usize, n_cols: usize) -> Buffer<T> {
    let mut buffer = Buffer::new();
    buffer.resize(n_rows, n_cols);
    buffer.values_mut().copy_from_slice(values);
    buffer
}

/// Compares gradients with finite differences of Σ_i c_i y_i for random c, then `f32` with `f64`.
pub(crate) fn check_layer(case: &impl LayerCase) {
    let [weights, x, d_out] = draw(case);
    let outcome = case.run(&weights, &x, &d_out, Par::Seq);
    let point = [&weights[..], &x].concat();
    let gradient = [&outcome.gradient[..], &outcome.d_x].concat();
    let mut f = |point: &[f64]| -> f64 {
        let (weights, x) = point.split_at(weights.len());
        let out = case.run(weights, x, &d_out, Par::Seq).out;
        out.iter().zip(&d_out).map(|(y, c)| y * c).sum()
    };
    assert_gradient(&mut f, &point, &gradient, 1e-7);

    let [weights, x, d_out] = [weights, x, d_out].map(narrow);
    let single = case.run(&weights, &x, &d_out, Par::Seq);
    assert_close(&single.out, &outcome.out);
    assert_close(&single.gradient, &outcome.gradient);
    assert_close(&single.d_x, &outcome.d_x);
}

/// Checks that any number of threads gives the same bits.
pub(crate) fn check_threads(case: &impl LayerCase) {
    let [weights, x, d_out] = draw(case).map(narrow);
    let outcome = in_pools(|par| case.run(&weights, &x, &d_out, par));
    assert!(outcome.out.iter().chain(&outcome.gradient).all(|y| y.is_finite()));
}

/// Returns the result of `f`, which must be the same without threads and in pools of one and three threads.
pub(crate) fn in_pools<R: PartialEq + Send>(f: impl Fn(Par) -> R + Sync) -> R {
    let alone = f(Par::Seq);
    for n_threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        assert!(
            pool.install(|| f(Par::rayon(n_threads))) == alone,
            "the result differs with {n_threads} threads"
        );
    }
    alone
}

fn draw(case: &impl LayerCase) -> [Vec<f64>; 3] {
    let mut rng = Rng::new(1);
    case.sizes().map(|size| {
        let mut numbers = vec![0.0; size];
        fill_uniform(&mut numbers, 1.0, &mut rng);
        numbers
    })
}

fn narrow(numbers: Vec<f64>) -> Vec<f32> {
    numbers.into_iter().map(|x| x as f32).collect()
}

fn assert_close(single: &[f32], double: &[f64]) {
    let scale = double.iter().fold(1.0f64, |max, x| max.max(x.abs()));
    for (&a, &b) in single.iter().zip(double) {
        assert!((f64::from(a) - b).abs() <= 1e-5 * scale, "{a} and {b}, of order {scale}");
    }
}
