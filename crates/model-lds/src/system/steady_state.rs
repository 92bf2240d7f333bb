//! The dynamics of a model, and its steady state: the limits of the filter's and the smoother's covariances and gains.
//!
//! All matrices here are h × h.

use crate::linalg::dense::{cholesky, identity, log_det, product, solve_lower, symmetric};
use crate::linalg::error::NumericError;
use crate::linalg::lu::inverse;
use crate::linalg::solvers::{Sylvester, riccati, smoother_gain};
use latens_math::linalg::Mat;

/// A model without its word vectors: the transition A, the noise covariance Q of the state, E in the noise covariance
/// D = I − v vᵀ − C E Cᵀ of words, and G = Cᵀ C.
///
/// In the canonical gauge, where the stationary covariance of the state is I, E = I and Q = I − A Aᵀ.
#[derive(Clone, Debug)]
pub(crate) struct Dynamics {
    pub(crate) a: Mat<f64>,
    pub(crate) q: Mat<f64>,
    pub(crate) e: Mat<f64>,
    pub(crate) g: Mat<f64>,
}

impl Dynamics {
    pub(crate) fn canonical(a: Mat<f64>, g: Mat<f64>) -> Dynamics {
        let e = identity(a.nrows());
        let q = symmetric(&(&e - product([a.as_ref(), a.transpose()])));
        Dynamics { a, q, e, g }
    }

    pub(crate) fn dim(&self) -> usize {
        self.a.nrows()
    }
}

/// The steady state of the filter and the smoother.
#[derive(Clone, Debug)]
pub(crate) struct SteadyState {
    /// Σ₁ = Cov(x_t | w_<t).
    #[cfg_attr(not(test), expect(dead_code, reason = "tests look at it"))]
    pub(crate) predicted: Mat<f64>,
    /// Σ₀ = Cov(x_t | w_≤t).
    #[cfg_attr(not(test), expect(dead_code, reason = "tests look at it"))]
    pub(crate) filtered: Mat<f64>,
    /// Cov(x_t | all w).
    pub(crate) smoothed: Mat<f64>,
    /// N = (I + G M)⁻¹, where M = Σ₁ − E.
    pub(crate) n: Mat<f64>,
    /// Θ = M N. The inverse of the innovation covariance is S⁻¹ = I − C Θ Cᵀ.
    pub(crate) theta: Mat<f64>,
    /// B = Σ₁ N. The Kalman gain is K = B Cᵀ.
    pub(crate) b: Mat<f64>,
    /// H = A − B G A of the filter x_t = H x_{t−1} + K w_t.
    pub(crate) h: Mat<f64>,
    /// J of the smoother xT_t = J xT_{t+1} + P x_t.
    pub(crate) j: Mat<f64>,
    /// P = I − J A of the smoother.
    pub(crate) p: Mat<f64>,
    /// The solver of X = J X Jᵀ + F.
    pub(crate) smoother_equation: Sylvester,
    /// ln pdet S = ln det(I + G M).
    pub(crate) log_det: f64,
}

impl SteadyState {
    pub(crate) fn of(model: &Dynamics) -> Result<SteadyState, NumericError> {
        let Dynamics { a, q, e, g } = model;
        let factor = cholesky(g, "the Gram matrix of the word vectors")?;
        let predicted = riccati(a, q, &precision(&factor, e)?)?;
        let update = MeasurementUpdate::new(model, &factor, &predicted)?;
        let MeasurementUpdate { n, theta, b, filtered, log_det } = update;
        let h = a - product([b.as_ref(), g.as_ref(), a.as_ref()]);
        let j = smoother_gain(a, &filtered, &predicted)?;
        let p = identity(model.dim()) - product([j.as_ref(), a.as_ref()]);
        let rest = &filtered - product([j.as_ref(), predicted.as_ref(), j.transpose()]);
        let mut smoother_equation = Sylvester::symmetric(&j);
        let smoothed = symmetric(&smoother_equation.solve(&symmetric(&rest))?);
        Ok(SteadyState {
            smoother_equation,
            predicted,
            filtered,
            smoothed,
            n,
            theta,
            b,
            h,
            j,
            p,
            log_det,
        })
    }
}

/// The measurement update of the filter, given the predicted covariance of the state.
pub(crate) struct MeasurementUpdate {
    pub(crate) n: Mat<f64>,
    pub(crate) theta: Mat<f64>,
    pub(crate) b: Mat<f64>,
    pub(crate) filtered: Mat<f64>,
    pub(crate) log_det: f64,
}

impl MeasurementUpdate {
    /// The update for a predicted covariance; `factor` is the Cholesky factor of G.
    pub(crate) fn new(
        model: &Dynamics,
        factor: &Mat<f64>,
        predicted: &Mat<f64>,
    ) -> Result<MeasurementUpdate, NumericError> {
        let Dynamics { e, g, .. } = model;
        let m = predicted - e;
        // I + G M is not symmetric, but I + Lᵀ M L has its determinant.
        let inner = product([factor.transpose(), m.as_ref(), factor.as_ref()]);
        let name = "the covariance of the innovations";
        let inner = cholesky(&symmetric(&(identity(model.dim()) + inner)), name)?;
        let n = inverse(&(identity(model.dim()) + product([g.as_ref(), m.as_ref()])), name)?;
        let b = product([predicted.as_ref(), n.as_ref()]);
        let gain = product([b.as_ref(), g.as_ref(), predicted.as_ref()]);
        Ok(MeasurementUpdate {
            theta: symmetric(&product([m.as_ref(), n.as_ref()])),
            filtered: symmetric(&(predicted - gain)),
            log_det: log_det(&inner),
            n,
            b,
        })
    }
}

/// R = Cᵀ D⁻¹ C = L (I − Lᵀ E L)⁻¹ Lᵀ, where `factor` = L is the Cholesky factor of G.
pub(crate) fn precision(factor: &Mat<f64>, e: &Mat<f64>) -> Result<Mat<f64>, NumericError> {
    let inner = product([factor.transpose(), e.as_ref(), factor.as_ref()]);
    let inner =
        cholesky(&symmetric(&(identity(e.nrows()) - inner)), "the noise covariance of the words")?;
    let half = solve_lower(&inner, factor.transpose().to_owned());
    Ok(symmetric(&product([half.transpose(), half.as_ref()])))
}
