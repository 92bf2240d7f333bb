//! A model and its steady state: what filter and smoother tend to after a few words. All of it is h × h.

use crate::dense::{NumericError, cholesky, identity, log_det, product, solve_lower, symmetric};
use crate::lu::inverse;
use crate::solvers::{Sylvester, riccati, smoother_gain};
use latens_math::linalg::Mat;

/// What a model is apart from its words: the state's transition A, the noise covariances
/// Q of the state and D = I − v vᵀ − C E Cᵀ of words, and G = Cᵀ C.
///
/// In the canonical gauge the state's stationary covariance is I: then E = I and Q = I − A Aᵀ.
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

/// The steady state; names as in the notes of the model's page.
#[derive(Clone, Debug)]
pub(crate) struct Steady {
    /// Σ₁ = Cov(x_t | w_<t).
    #[cfg_attr(not(test), expect(dead_code, reason = "tests look at it"))]
    pub(crate) predicted: Mat<f64>,
    /// Σ₀ = Cov(x_t | w_≤t).
    #[cfg_attr(not(test), expect(dead_code, reason = "tests look at it"))]
    pub(crate) filtered: Mat<f64>,
    /// Cov(x_t | all w).
    pub(crate) smoothed: Mat<f64>,
    /// N = (I + G M)⁻¹ with M = Σ₁ − E.
    pub(crate) n: Mat<f64>,
    /// Θ = M N: S⁻¹ = I − C Θ Cᵀ is the inverse of the innovation covariance.
    pub(crate) theta: Mat<f64>,
    /// B = Σ₁ N: the gain is K = B Cᵀ.
    pub(crate) b: Mat<f64>,
    /// H = A − B G A: x_t = H x_{t−1} + K w_t.
    pub(crate) h: Mat<f64>,
    /// J and P = I − J A: xT_t = J xT_{t+1} + P x_t.
    pub(crate) j: Mat<f64>,
    pub(crate) p: Mat<f64>,
    /// Solves X = J X Jᵀ + F.
    pub(crate) past: Sylvester,
    /// ln pdet S = ln det(I + G M).
    pub(crate) log_det: f64,
}

impl Steady {
    pub(crate) fn of(model: &Dynamics) -> Result<Steady, NumericError> {
        let Dynamics { a, q, e, g } = model;
        let factor = cholesky(g, "the covariance of the words' vectors")?;
        let predicted = riccati(a, q, &precision(&factor, e)?)?;
        let update = Update::new(model, &factor, &predicted)?;
        let Update { n, theta, b, filtered, log_det } = update;
        let h = a - product([b.as_ref(), g.as_ref(), a.as_ref()]);
        let j = smoother_gain(a, &filtered, &predicted)?;
        let p = identity(model.dim()) - product([j.as_ref(), a.as_ref()]);
        let rest = &filtered - product([j.as_ref(), predicted.as_ref(), j.transpose()]);
        let mut past = Sylvester::symmetric(&j);
        let smoothed = symmetric(&past.solve(&symmetric(&rest))?);
        Ok(Steady { past, predicted, filtered, smoothed, n, theta, b, h, j, p, log_det })
    }
}

/// What a word changes, given the covariance of the state's prediction.
pub(crate) struct Update {
    pub(crate) n: Mat<f64>,
    pub(crate) theta: Mat<f64>,
    pub(crate) b: Mat<f64>,
    pub(crate) filtered: Mat<f64>,
    pub(crate) log_det: f64,
}

impl Update {
    /// `factor` is the Cholesky factor of G.
    pub(crate) fn new(
        model: &Dynamics,
        factor: &Mat<f64>,
        predicted: &Mat<f64>,
    ) -> Result<Update, NumericError> {
        let Dynamics { e, g, .. } = model;
        let m = predicted - e;
        // I + G M is not symmetric, but I + Lᵀ M L has its determinant.
        let inner = product([factor.transpose(), m.as_ref(), factor.as_ref()]);
        let inner = cholesky(
            &symmetric(&(identity(model.dim()) + inner)),
            "the covariance of what is new in a word",
        )?;
        let n = inverse(
            &(identity(model.dim()) + product([g.as_ref(), m.as_ref()])),
            "the covariance of what is new in a word",
        )?;
        let b = product([predicted.as_ref(), n.as_ref()]);
        let gain = product([b.as_ref(), g.as_ref(), predicted.as_ref()]);
        Ok(Update {
            theta: symmetric(&product([m.as_ref(), n.as_ref()])),
            filtered: symmetric(&(predicted - gain)),
            log_det: log_det(&inner),
            n,
            b,
        })
    }
}

/// R = Cᵀ D⁻¹ C = L (I − Lᵀ E L)⁻¹ Lᵀ with G = L Lᵀ.
pub(crate) fn precision(factor: &Mat<f64>, e: &Mat<f64>) -> Result<Mat<f64>, NumericError> {
    let inner = product([factor.transpose(), e.as_ref(), factor.as_ref()]);
    let inner =
        cholesky(&symmetric(&(identity(e.nrows()) - inner)), "the covariance of the words' noise")?;
    let half = solve_lower(&inner, factor.transpose().to_owned());
    Ok(symmetric(&product([half.transpose(), half.as_ref()])))
}
