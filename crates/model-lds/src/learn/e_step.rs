//! The E step from covariances alone (ASOS, Martens 2010): expectations of the states over a text, without reading
//! the text.
//!
//! Let x_t be the filtered state, xT_t the smoothed one, and (a, b)_k = 1/T' Σ_t a_{t+k} b_tᵀ. Multiplying the
//! recursions x_t = H x_{t−1} + K w_t and xT_t = J xT_{t+1} + P x_t by w or x and averaging over t gives recursions
//! between covariances. They are closed at the horizon r by the assumption that innovations are uncorrelated with
//! earlier states: (w, x)_{r+1} = C A (x, x)_r.

use crate::learn::moments::covariances::{Covariances, LagWeights};
use crate::linalg::dense::{
    add_product, frobenius, is_finite, product, symmetric, trace, trace_of_product,
};
use crate::linalg::error::NumericError;
use crate::linalg::panel::Panel;
use crate::linalg::quantization::Quantize;
use crate::linalg::solvers::Sylvester;
use crate::system::steady_state::{Dynamics, SteadyState};
use latens_math::linalg::Mat;

/// The expectations that the M step needs, and the measures that they give on the way.
#[derive(Clone, Debug)]
pub(crate) struct Expectations<T> {
    /// E[x_t x_tᵀ].
    pub(crate) state: Mat<f64>,
    /// E[x_{t+1} x_tᵀ].
    pub(crate) next_state: Mat<f64>,
    /// E[w_t x_tᵀ] = `words` + C `words_from_c`; empty for [`WordTerms::Skip`].
    pub(crate) words: Panel<T>,
    pub(crate) words_from_c: Mat<f64>,
    pub(crate) moments: StateMoments,
    /// Log-likelihood in nats per token, minus that of independent words from a Gaussian with the same covariance.
    pub(crate) gain: f64,
}

/// Whether the E step computes E[w_t x_tᵀ], which only an M step needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WordTerms {
    Compute,
    Skip,
}

/// Second moments of the inferred states.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StateMoments {
    /// (x, x)_0.
    pub(crate) filtered: Mat<f64>,
    /// (xT, xT)_0.
    pub(crate) smoothed: Mat<f64>,
}

/// The expectations under a model, from covariances of words up to `horizon` tokens apart.
pub(crate) fn expectations<T: Quantize>(
    covariances: &impl Covariances<T>,
    model: &Dynamics,
    steady: &SteadyState,
    c: &Panel<T>,
    horizon: usize,
    word_terms: WordTerms,
) -> Result<Expectations<T>, NumericError> {
    // The weights of words depend on the steady state alone, so one pass over the counts is enough.
    let smoothing = Smoothing::new(steady, horizon);
    let weights = (word_terms == WordTerms::Compute).then(|| smoothing.weights(steady));
    let pass = covariances.pass(c, horizon, weights.as_ref());
    let filtered = FilterCovariances::new(model, steady, &pass.r)?;
    let (moments, lag_one) = smoothed(steady, &filtered)?;
    let posterior = &steady.smoothed;
    let state = symmetric(&(&moments.smoothed + posterior));
    let next_state = lag_one + product([posterior.as_ref(), steady.j.transpose()]);
    let words_from_c = smoothing.words_from_c(model, steady, &filtered);
    let gain = gain(model, steady, &filtered);
    let all_finite = gain.is_finite() && is_finite(&state) && is_finite(&next_state);
    if !all_finite {
        return Err(NumericError::NotConverged("the E step"));
    }
    Ok(Expectations { state, next_state, words: pass.sum, words_from_c, moments, gain })
}

/// Relative tolerance of the fixed-point iteration for the closure.
const CLOSURE_TOLERANCE: f64 = 1e-12;

/// Covariances of words and filtered states: wx_k = Cᵀ (w, x)_k and X_k = (x, x)_k.
pub(crate) struct FilterCovariances {
    pub(crate) wx_1: Mat<f64>,
    pub(crate) x: Vec<Mat<f64>>,
    /// H^r.
    far: Mat<f64>,
}

impl FilterCovariances {
    /// Solves the recursions for given R_k = Cᵀ Ψ_k C, k = 1, 2, ….
    pub(crate) fn new(
        model: &Dynamics,
        steady: &SteadyState,
        r: &[Mat<f64>],
    ) -> Result<FilterCovariances, NumericError> {
        let (a, g, b, h) = (&model.a, &model.g, &steady.b, &steady.h);
        let far = power(h, r.len());
        let mut open = Recursion::open(model, steady, r);
        // X = A X Hᵀ + H^{2r+1} Xᵀ (Aᵀ G Bᵀ) + xw_r Bᵀ, where the middle term is tiny.
        let right = product([a.transpose(), g.as_ref(), b.transpose()]);
        let power = product([far.as_ref(), far.as_ref(), h.as_ref()]);
        let mut sums = Sylvester::new(a.clone(), h.transpose().to_owned());
        let mut change = sums.solve(&product([open.xw[r.len()].as_ref(), b.transpose()]))?;
        let mut x = change.clone();
        for _ in 0..200 {
            let f = product([power.as_ref(), change.transpose(), right.as_ref()]);
            change = sums.solve_addend(&f, frobenius(&x))?;
            x += &change;
            if frobenius(&change) <= CLOSURE_TOLERANCE * frobenius(&x) {
                open.close(product([g.as_ref(), a.as_ref(), x.as_ref()]), &far, h);
                return Ok(FilterCovariances {
                    x: downward(steady, x, &open.xw),
                    wx_1: open.wx_1,
                    far,
                });
            }
        }
        Err(NumericError::NotConverged("the covariance of the states"))
    }
}

/// wx_k = wx_{k+1} Hᵀ + R_k Bᵀ downward from wx_{r+1}, and xw_k = H xw_{k−1} + B R_k upward.
struct Recursion {
    wx_1: Mat<f64>,
    xw: Vec<Mat<f64>>,
}

impl Recursion {
    /// The recursions with nothing beyond the horizon: wx_{r+1} = 0.
    fn open(model: &Dynamics, steady: &SteadyState, r: &[Mat<f64>]) -> Recursion {
        let (b, h) = (&steady.b, &steady.h);
        let down = |above: &Mat<f64>, r_k: &Mat<f64>| {
            let own = product([r_k.as_ref(), b.transpose()]);
            add_product(own, above.as_ref(), h.transpose())
        };
        let zero = Mat::zeros(model.dim(), model.dim());
        let wx_1 = r.iter().rev().fold(zero, |above, r_k| down(&above, r_k));
        let mut xw = vec![down(&wx_1, &model.g).transpose().to_owned()];
        for r_k in r {
            let own = product([b.as_ref(), r_k.as_ref()]);
            xw.push(add_product(own, h.as_ref(), xw[xw.len() - 1].as_ref()));
        }
        Recursion { wx_1, xw }
    }

    /// Adds the terms of wx_{r+1} = `closure`, given `far` = H^r.
    fn close(&mut self, closure: Mat<f64>, far: &Mat<f64>, h: &Mat<f64>) {
        let near = product([closure.as_ref(), far.transpose()]);
        let mut below = product([h.as_ref(), near.transpose()]);
        self.wx_1 += &near;
        for (k, xw) in self.xw.iter_mut().enumerate() {
            if k > 0 {
                below = product([h.as_ref(), below.as_ref()]);
            }
            *xw += &below;
        }
    }
}

/// X_k = X_{k+1} Hᵀ + xw_k Bᵀ from X_r down to X_0.
fn downward(steady: &SteadyState, last: Mat<f64>, xw: &[Mat<f64>]) -> Vec<Mat<f64>> {
    let mut x = vec![last];
    for xw_k in xw[..xw.len() - 1].iter().rev() {
        let above = x.last().expect("`x` starts with `last`");
        let own = product([xw_k.as_ref(), steady.b.transpose()]);
        x.push(add_product(own, above.as_ref(), steady.h.transpose()));
    }
    x.reverse();
    x
}

/// The second moments of filtered and of smoothed states, and (xT, xT)_1.
fn smoothed(
    steady: &SteadyState,
    filtered: &FilterCovariances,
) -> Result<(StateMoments, Mat<f64>), NumericError> {
    let (j, p) = (&steady.j, &steady.p);
    let mut s = filtered.x[filtered.x.len() - 1].clone();
    let mut s_1 = s.clone();
    for x_k in filtered.x[..filtered.x.len() - 1].iter().rev() {
        s_1 = s;
        s = add_product(product([p.as_ref(), x_k.as_ref()]), j.as_ref(), s_1.as_ref());
    }
    let constant =
        product([j.as_ref(), s_1.as_ref(), p.transpose()]) + product([p.as_ref(), s.transpose()]);
    let smoothed = steady.smoother_equation.clone().solve(&constant)?;
    let lag_one =
        product([smoothed.as_ref(), j.transpose()]) + product([s_1.as_ref(), p.transpose()]);
    let moments = StateMoments { filtered: filtered.x[0].clone(), smoothed };
    Ok((moments, lag_one))
}

/// The weights of the covariances at each lag in E[w xTᵀ]: Z_r = J^r, Z_k = J^k P + Z_{k+1} H.
struct Smoothing {
    z: Vec<Mat<f64>>,
}

impl Smoothing {
    fn new(steady: &SteadyState, horizon: usize) -> Smoothing {
        let SteadyState { j, p, h, .. } = steady;
        let mut past = vec![p.clone()];
        for k in 1..horizon {
            past.push(product([j.as_ref(), past[k - 1].as_ref()]));
        }
        let mut z = vec![power(j, horizon)];
        for past in past.into_iter().rev() {
            z.push(add_product(past, z[z.len() - 1].as_ref(), h.as_ref()));
        }
        z.reverse();
        Smoothing { z }
    }

    /// The weights (Z_0 H^k B)ᵀ of Ψ_k C and (Z_k B)ᵀ of Ψ_kᵀ C.
    fn weights(&self, steady: &SteadyState) -> LagWeights {
        let SteadyState { b, h, .. } = steady;
        let (mut right, mut left) = (Vec::new(), Vec::new());
        let mut past = self.z[0].clone();
        for z_k in &self.z[1..] {
            past = product([past.as_ref(), h.as_ref()]);
            right.push(product([past.as_ref(), b.as_ref()]).transpose().to_owned());
            left.push(product([z_k.as_ref(), b.as_ref()]).transpose().to_owned());
        }
        LagWeights { right, left }
    }

    /// The terms of lag 0, (Z_0 B)ᵀ, and of lags beyond the horizon, (Z_0 H^{r+1} Xᵀ Aᵀ)ᵀ.
    fn words_from_c(
        &self,
        model: &Dynamics,
        steady: &SteadyState,
        filtered: &FilterCovariances,
    ) -> Mat<f64> {
        let horizon = self.z.len() - 1;
        let near = product([self.z[0].as_ref(), steady.b.as_ref()]);
        let far = product([self.z[0].as_ref(), filtered.far.as_ref(), steady.h.as_ref()]);
        let x = product([filtered.x[horizon].transpose(), model.a.transpose()]);
        add_product(near, far.as_ref(), x.as_ref()).transpose().to_owned()
    }
}

/// X^n for n ≥ 1, by repeated squaring.
fn power(x: &Mat<f64>, n: usize) -> Mat<f64> {
    if n == 1 {
        return x.clone();
    }
    let root = power(x, n / 2);
    let square = product([root.as_ref(), root.as_ref()]);
    if n.is_multiple_of(2) { square } else { product([square.as_ref(), x.as_ref()]) }
}

/// −½ (ln det(I + G M) − tr(Θ G) − 2 tr(Aᵀ N wx_1) + tr(Aᵀ (G − G Θ G) A X_0)).
fn gain(model: &Dynamics, steady: &SteadyState, filtered: &FilterCovariances) -> f64 {
    let Dynamics { a, g, .. } = model;
    let SteadyState { theta, n, .. } = steady;
    let g_s = g - product([g.as_ref(), theta.as_ref(), g.as_ref()]);
    let crossing = product([n.as_ref(), filtered.wx_1.as_ref(), a.transpose()]);
    let predicted = product([g_s.as_ref(), a.as_ref(), filtered.x[0].as_ref()]);
    -0.5 * (steady.log_det - trace_of_product(theta, g) - 2.0 * trace(&crossing)
        + trace_of_product(&predicted, &a.transpose().to_owned()))
}
