//! Sylvester, Lyapunov and Riccati equations of the stationary state, by doubling.
//!
//! Doubling converges quadratically.

use crate::linalg::dense::{add_product, frobenius, identity, is_finite, product, symmetric};
use crate::linalg::error::NumericError;
use crate::linalg::lu::{Lu, solve};
use latens_math::linalg::Mat;
use std::sync::Arc;

const MAX_STEPS: usize = 60;

/// A^(2^k) and B^(2^k); `None` where B = Aᵀ.
type Powers = (Mat<f64>, Option<Mat<f64>>);

/// Solves X = A X B + F for several F; the powers of A and B are computed once.
#[derive(Clone, Debug)]
pub(crate) struct Sylvester {
    powers: Vec<Arc<Powers>>,
}

impl Sylvester {
    pub(crate) fn new(a: Mat<f64>, b: Mat<f64>) -> Sylvester {
        Sylvester { powers: vec![Arc::new((a, Some(b)))] }
    }

    /// The solver of X = A X Aᵀ + F.
    pub(crate) fn symmetric(a: &Mat<f64>) -> Sylvester {
        Sylvester { powers: vec![Arc::new((a.clone(), None))] }
    }

    pub(crate) fn solve(&mut self, f: &Mat<f64>) -> Result<Mat<f64>, NumericError> {
        self.solve_addend(f, 0.0)
    }

    /// Solves for an X that is added to a matrix of the given norm: terms below its rounding error are skipped.
    pub(crate) fn solve_addend(
        &mut self,
        f: &Mat<f64>,
        norm: f64,
    ) -> Result<Mat<f64>, NumericError> {
        let mut x = f.clone();
        for step in 0..MAX_STEPS {
            if step == self.powers.len() {
                let (a, b) = &*self.powers[step - 1];
                let square = |power: &Mat<f64>| product([power.as_ref(), power.as_ref()]);
                self.powers.push(Arc::new((square(a), b.as_ref().map(square))));
            }
            let (a, b) = &*self.powers[step];
            let b = b.as_ref().map_or_else(|| a.transpose(), |b| b.as_ref());
            let increment = product([a.as_ref(), x.as_ref(), b]);
            x += &increment;
            let (change, size) = (frobenius(&increment), frobenius(&x));
            if !size.is_finite() {
                break;
            }
            if change <= 1e-15 * size.max(norm) {
                return Ok(x);
            }
        }
        Err(NumericError::NotConverged("the Sylvester equation of the states"))
    }
}

/// The solution of X = A X Aᵀ + F: the stationary covariance of a state with transition A and noise covariance F.
pub(crate) fn lyapunov(a: &Mat<f64>, f: &Mat<f64>) -> Result<Mat<f64>, NumericError> {
    Sylvester::symmetric(a).solve(f)
}

/// The stabilizing solution of the Riccati equation X = Q + A X (I + R X)⁻¹ Aᵀ, by structure-preserving doubling.
///
/// With R = Cᵀ D⁻¹ C, X is the covariance of the state given all earlier words.
pub(crate) fn riccati(a: &Mat<f64>, q: &Mat<f64>, r: &Mat<f64>) -> Result<Mat<f64>, NumericError> {
    let name = "the predicted covariance of the states";
    let (mut a, mut g, mut s) = (a.transpose().to_owned(), r.clone(), q.clone());
    for _ in 0..MAX_STEPS {
        let w = Lu::new(&add_product(identity(a.nrows()), g.as_ref(), s.as_ref()));
        let wa = w.solve(&a, name)?;
        let increment = symmetric(&product([a.transpose(), s.as_ref(), wa.as_ref()]));
        s += &increment;
        if frobenius(&increment) <= 1e-14 * frobenius(&s) {
            return if is_finite(&s) { Ok(s) } else { Err(NumericError::NotConverged(name)) };
        }
        let wg = w.solve(&g, name)?;
        g += &symmetric(&product([a.as_ref(), wg.as_ref(), a.transpose()]));
        a = product([a.as_ref(), wa.as_ref()]);
    }
    Err(NumericError::NotConverged(name))
}

/// The same solution as [`riccati`], by iterating the filter's recursion from the stationary covariance.
///
/// It needs no inverse of D, but many more steps.
#[cfg(test)]
pub(crate) fn riccati_by_filtering(
    a: &Mat<f64>,
    q: &Mat<f64>,
    g: &Mat<f64>,
    e: &Mat<f64>,
) -> Result<Mat<f64>, NumericError> {
    let mut s = lyapunov(a, q)?;
    for _ in 0..100_000 {
        let n = crate::linalg::lu::inverse(
            &(identity(a.nrows()) + product([g.as_ref(), (&s - e).as_ref()])),
            "S",
        )?;
        let gain = product([s.as_ref(), n.as_ref(), g.as_ref(), s.as_ref()]);
        let next = symmetric(&(product([a.as_ref(), (&s - gain).as_ref(), a.transpose()]) + q));
        let change = frobenius(&(&next - &s));
        s = next;
        if change <= 1e-14 * frobenius(&s) {
            return Ok(s);
        }
    }
    Err(NumericError::NotConverged("the filter"))
}

/// The gain of the smoother, J = Σ₀ Aᵀ Σ₁⁻¹.
pub(crate) fn smoother_gain(
    a: &Mat<f64>,
    filtered: &Mat<f64>,
    predicted: &Mat<f64>,
) -> Result<Mat<f64>, NumericError> {
    let right = product([a.as_ref(), filtered.as_ref()]);
    Ok(solve(predicted, &right, "the predicted covariance of the states")?.transpose().to_owned())
}
