//! Models and reference computations that several tests share.

use crate::fitted::filter::{filter, smooth};
use crate::learn::likelihood::{Run, TextGain, warm_up};
use crate::learn::moments::covariances::{Covariances, Side};
use crate::learn::moments::text_moments::Moments;
use crate::learn::subspace::{Sketch, decompose};
use crate::linalg::compact_panel::{CompactPanel, Shape};
use crate::linalg::compact_products::times;
use crate::linalg::dense::{frobenius, identity, product, to_row_major};
use crate::linalg::error::NumericError;
use crate::linalg::panel::Panel;
use crate::linalg::sums::cross;
use crate::system::canonical::Canonical;
use crate::system::steady_state::{Dynamics, SteadyState};
use latens_corpus::WordId;
use latens_math::Real;
use latens_math::linalg::Mat;

pub(super) const SKETCH: Sketch = Sketch { n_oversamples: 20, n_power_iterations: 3, seed: 1 };

/// A callback of `decompose` that never stops.
pub(super) fn keep_going() -> Result<(), NumericError> {
    Ok(())
}

pub(super) fn initial_model(moments: &Moments<f64>, dim: usize) -> Canonical<f64> {
    let decomposition = decompose(moments, 3, dim, SKETCH, &mut keep_going).unwrap();
    decomposition.identify(moments.null_vector()).unwrap().model
}

pub(super) fn assert_near(a: &Mat<f64>, b: &Mat<f64>, tolerance: f64, what: &str) {
    let difference = frobenius(&(a - b));
    assert!(difference < tolerance, "{what}: {difference:e}");
}

pub(super) fn to_mat<T: Real>(panel: &Panel<T>) -> Mat<f64> {
    Mat::from_fn(panel.n_rows(), panel.n_cols(), |i, j| panel.row(i)[j].wide())
}

pub(super) fn to_compact(x: &Mat<f64>) -> CompactPanel<f64> {
    let rows = |row: usize, out: &mut [f64]| {
        out.iter_mut().enumerate().for_each(|(j, out)| *out = x[(row, j)]);
    };
    CompactPanel::side_by_side(1, Shape { n_rows: x.nrows(), n_cols: x.ncols() }, 64, rows)
        .remove(0)
}

pub(super) fn from_compact(x: &CompactPanel<f64>) -> Mat<f64> {
    to_mat(&times(std::slice::from_ref(x), &[identity(x.n_cols())]))
}

/// Ψ_k as a dense matrix.
pub(super) fn dense_covariance(moments: &Moments<f64>, lag: usize) -> Mat<f64> {
    let n = moments.n_types();
    let eye: Vec<f64> = (0..n * n).map(|i| f64::from(u8::from(i % (n + 1) == 0))).collect();
    let product = moments.product(lag, Side::Later, &Panel::from_rows(n, n, &eye));
    Mat::from_fn(n, n, |i, j| product.row(i)[j])
}

/// A model with fixed parameters, not in the canonical gauge.
pub(super) fn fixed_model(moments: &Moments<f64>) -> (Dynamics, Panel<f64>) {
    let raw: Vec<f64> =
        (0..16).map(|at| 0.3 * f64::sin((1 + at / 2 + 3 * (at % 2)) as f64)).collect();
    let mut c = Panel::from_rows(8, 2, &raw);
    let v = moments.null_vector();
    for j in 0..2 {
        let along: f64 = (0..8).map(|i| v[i] * raw[2 * i + j]).sum();
        (0..8).for_each(|i| c.row_mut(i)[j] -= v[i] * along);
    }
    let square = |values: [f64; 4]| Mat::from_fn(2, 2, |i, j| values[2 * i + j]);
    let model = Dynamics {
        a: square([0.6, 0.2, -0.3, 0.5]),
        e: square([1.5, 0.2, 0.2, 1.2]),
        q: identity(2),
        g: cross(c.view(), c.view()),
    };
    (model, c)
}

/// u_i = c_i / √μ_i.
pub(super) fn vector(c: &Panel<f64>, mu: &[f64], word: usize) -> Mat<f64> {
    Mat::from_fn(c.n_cols(), 1, |i, _| c.row(word)[i] / mu[word].sqrt())
}

pub(super) fn text_gain(
    model: &Dynamics,
    steady: &SteadyState,
    c: &Panel<f64>,
    mu: &[f64],
    text: &[usize],
) -> f64 {
    let words: Vec<WordId> = text.iter().map(|&word| WordId::from(word)).collect();
    let mut runs = Vec::new();
    Run::cut(0..words.len(), warm_up(steady), &mut runs);
    TextGain::new(model, steady, c, mu).of(&words, &runs)
}

/// The filtered and the smoothed states of a text, by the steady-state filter and smoother.
pub(super) fn states(
    model: &Dynamics,
    steady: &SteadyState,
    c: &Panel<f64>,
    mu: &[f64],
    text: &[usize],
) -> [Vec<f64>; 2] {
    let inputs: Vec<Vec<f64>> = (0..mu.len())
        .map(|word| {
            let input = product([steady.b.as_ref(), vector(c, mu, word).as_ref()]);
            (0..model.dim()).map(|i| input[(i, 0)]).collect()
        })
        .collect();
    let h = to_row_major::<f64>(&steady.h);
    let steps = text.iter().map(|&word| (&h[..], &inputs[word][..]));
    let filtered = filter(steps, &vec![0.0; model.dim()]);
    let mut smoothed = filtered.clone();
    smooth(&to_row_major(&steady.j), &to_row_major(&steady.p), model.dim(), &mut smoothed);
    [filtered, smoothed]
}
