//! The E step from covariances alone (Martens 2010): expectations of states over a whole text, without
//! reading it.
//!
//! x_t is the filtered state and xT_t the smoothed one; (a, b)_k = 1/T' Σ_t a_{t+k} b_tᵀ. Multiplying the
//! recursions x_t = H x_{t−1} + K w_t and xT_t = J xT_{t+1} + P x_t by w or x and averaging turns them
//! into recursions between covariances. They are closed at the horizon r, where innovations are taken to be
//! uncorrelated with earlier states: (w, x)_{r+1} = C A (x, x)_r.

use crate::covariances::{Covariances, Weights};
use crate::dense::{
    NumericError, add_product, frobenius, is_finite, product, symmetric, trace_of_product,
};
use crate::packing::Packing;
use crate::panel::Panel;
use crate::solvers::Sylvester;
use crate::steady::{Dynamics, Steady};
use latens_math::linalg::Mat;

/// What the M step needs, and what is measured on the way.
#[derive(Clone, Debug)]
pub(crate) struct Expectations<T> {
    /// E[x_t x_tᵀ].
    pub(crate) state: Mat<f64>,
    /// E[x_{t+1} x_tᵀ].
    pub(crate) next_state: Mat<f64>,
    /// E[w_t x_tᵀ] = `words` + C `words_from_c`, if it was asked for.
    pub(crate) words: Panel<T>,
    pub(crate) words_from_c: Mat<f64>,
    pub(crate) moments: StateMoments,
    /// Nats a token over independent words from a Gaussian of the same covariance.
    pub(crate) gain: f64,
}

/// Second moments of states that were inferred.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StateMoments {
    /// (x, x)_0.
    pub(crate) filtered: Mat<f64>,
    /// (xT, xT)_0.
    pub(crate) smoothed: Mat<f64>,
}

/// The expectations at a model, from covariances up to `horizon` words apart.
pub(crate) fn expectations<T: Packing>(
    covariances: &impl Covariances<T>,
    model: &Dynamics,
    steady: &Steady,
    c: &Panel<T>,
    horizon: usize,
    with_words: bool,
) -> Result<Expectations<T>, NumericError> {
    // How words are weighted depends on the steady state alone, so one pass over the counts is enough.
    let smoothing = Smoothing::new(steady, horizon);
    let weights = with_words.then(|| smoothing.weights(steady));
    let pass = covariances.pass(c, horizon, weights.as_ref());
    let chain = Chain::new(model, steady, &pass.r)?;
    let (state_moments, lag_one) = smoothed(steady, &chain)?;
    let posterior = &steady.smoothed;
    let state = symmetric(&(&state_moments.smoothed + posterior));
    let next_state = lag_one + product([posterior.as_ref(), steady.j.transpose()]);
    let words_from_c = smoothing.words_from_c(model, steady, &chain);
    let gain = gain(model, steady, &chain);
    let fine = gain.is_finite() && is_finite(&state) && is_finite(&next_state);
    if !fine {
        return Err(NumericError::NotConverging("the E step"));
    }
    let moments = state_moments;
    Ok(Expectations { state, next_state, words: pass.sum, words_from_c, moments, gain })
}

/// Where the iteration for the closure ends, as a share of what it finds.
const CLOSED: f64 = 1e-12;

/// Covariances of words and filtered states: wx_k = Cᵀ (w, x)_k and X_k = (x, x)_k.
pub(crate) struct Chain {
    pub(crate) wx_1: Mat<f64>,
    pub(crate) x: Vec<Mat<f64>>,
    /// H^r.
    far: Mat<f64>,
}

impl Chain {
    /// `r` has R_k = Cᵀ Ψ_k C, from k = 1.
    pub(crate) fn new(
        model: &Dynamics,
        steady: &Steady,
        r: &[Mat<f64>],
    ) -> Result<Chain, NumericError> {
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
            change = sums.solve_beside(&f, frobenius(&x))?;
            x += &change;
            if frobenius(&change) <= CLOSED * frobenius(&x) {
                open.close(product([g.as_ref(), a.as_ref(), x.as_ref()]), &far, h);
                return Ok(Chain { x: downward(steady, x, &open.xw), wx_1: open.wx_1, far });
            }
        }
        Err(NumericError::NotConverging("the covariance of the states"))
    }
}

/// wx_k = wx_{k+1} Hᵀ + R_k Bᵀ downward from wx_{r+1}, and xw_k = H xw_{k−1} + B R_k upward.
struct Recursion {
    wx_1: Mat<f64>,
    xw: Vec<Mat<f64>>,
}

impl Recursion {
    /// Without anything beyond the horizon: wx_{r+1} = 0.
    fn open(model: &Dynamics, steady: &Steady, r: &[Mat<f64>]) -> Recursion {
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

    /// Adds what wx_{r+1} = `closure` makes of it, given H^r.
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
fn downward(steady: &Steady, last: Mat<f64>, xw: &[Mat<f64>]) -> Vec<Mat<f64>> {
    let mut x = vec![last];
    for xw_k in xw[..xw.len() - 1].iter().rev() {
        let above = x.last().expect("the last is there");
        let own = product([xw_k.as_ref(), steady.b.transpose()]);
        x.push(add_product(own, above.as_ref(), steady.h.transpose()));
    }
    x.reverse();
    x
}

/// The second moments of filtered and of smoothed states, and (xT, xT)_1.
fn smoothed(steady: &Steady, chain: &Chain) -> Result<(StateMoments, Mat<f64>), NumericError> {
    let (j, p) = (&steady.j, &steady.p);
    let mut s = chain.x[chain.x.len() - 1].clone();
    let mut s_1 = s.clone();
    for x_k in chain.x[..chain.x.len() - 1].iter().rev() {
        s_1 = s;
        s = add_product(product([p.as_ref(), x_k.as_ref()]), j.as_ref(), s_1.as_ref());
    }
    let constant =
        product([j.as_ref(), s_1.as_ref(), p.transpose()]) + product([p.as_ref(), s.transpose()]);
    let smoothed = steady.past.clone().solve(&constant)?;
    let lag_one =
        product([smoothed.as_ref(), j.transpose()]) + product([s_1.as_ref(), p.transpose()]);
    let moments = StateMoments { filtered: chain.x[0].clone(), smoothed };
    Ok((moments, lag_one))
}

/// How covariances at each lag enter E[w xTᵀ]: Z_r = J^r, Z_k = J^k P + Z_{k+1} H.
struct Smoothing {
    z: Vec<Mat<f64>>,
}

impl Smoothing {
    fn new(steady: &Steady, horizon: usize) -> Smoothing {
        let Steady { j, p, h, .. } = steady;
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

    /// Ψ_k C is weighted with (Z_0 H^k B)ᵀ, and Ψ_kᵀ C with (Z_k B)ᵀ.
    fn weights(&self, steady: &Steady) -> Weights {
        let Steady { b, h, .. } = steady;
        let (mut right, mut left) = (Vec::new(), Vec::new());
        let mut past = self.z[0].clone();
        for z_k in &self.z[1..] {
            past = product([past.as_ref(), h.as_ref()]);
            right.push(product([past.as_ref(), b.as_ref()]).transpose().to_owned());
            left.push(product([z_k.as_ref(), b.as_ref()]).transpose().to_owned());
        }
        Weights { right, left }
    }

    /// The lag 0, (Z_0 B)ᵀ, and what lies beyond the horizon, (Z_0 H^{r+1} Xᵀ Aᵀ)ᵀ.
    fn words_from_c(&self, model: &Dynamics, steady: &Steady, chain: &Chain) -> Mat<f64> {
        let horizon = self.z.len() - 1;
        let near = product([self.z[0].as_ref(), steady.b.as_ref()]);
        let far = product([self.z[0].as_ref(), chain.far.as_ref(), steady.h.as_ref()]);
        let x = product([chain.x[horizon].transpose(), model.a.transpose()]);
        add_product(near, far.as_ref(), x.as_ref()).transpose().to_owned()
    }
}

/// X^n, n ≥ 1, by squares.
fn power(x: &Mat<f64>, n: usize) -> Mat<f64> {
    if n == 1 {
        return x.clone();
    }
    let root = power(x, n / 2);
    let square = product([root.as_ref(), root.as_ref()]);
    if n.is_multiple_of(2) { square } else { product([square.as_ref(), x.as_ref()]) }
}

/// −½ (ln det(I + G M) − tr(Θ G) − 2 tr(Aᵀ N wx_1) + tr(Aᵀ (G − G Θ G) A X_0)).
fn gain(model: &Dynamics, steady: &Steady, chain: &Chain) -> f64 {
    let Dynamics { a, g, .. } = model;
    let Steady { theta, n, .. } = steady;
    let g_s = g - product([g.as_ref(), theta.as_ref(), g.as_ref()]);
    let crossing = product([n.as_ref(), chain.wx_1.as_ref(), a.transpose()]);
    let predicted = product([g_s.as_ref(), a.as_ref(), chain.x[0].as_ref()]);
    -0.5 * (steady.log_det - trace_of_product(theta, g) - 2.0 * crate::dense::trace(&crossing)
        + trace_of_product(&predicted, &a.transpose().to_owned()))
}
