//! The M step of EM, which returns a model in the canonical gauge.

use crate::learn::e_step::Expectations;
use crate::linalg::dense::{cholesky, inverse_lower, product};
use crate::linalg::error::NumericError;
use crate::linalg::panel::{Panel, RightFactor, view, view_mut};
use crate::system::canonical::{Canonical, ClipMargins};
use latens_math::Real;
use latens_math::linalg::{Accum, Mat, matmul};
use rayon::prelude::*;

/// A = L⁻¹ E[x_{t+1} x_tᵀ] L⁻ᵀ and C = E[w xᵀ] L⁻ᵀ with E[x xᵀ] = L Lᵀ.
pub(crate) fn m_step<T: Real>(
    model: &Canonical<T>,
    expected: Expectations<T>,
    v: &[T],
) -> Result<Canonical<T>, NumericError> {
    let factor = inverse_lower(&cholesky(&expected.state, "the covariance of the states")?);
    let a = product([factor.as_ref(), expected.next_state.as_ref(), factor.transpose()]);
    let from_c = product([expected.words_from_c.as_ref(), factor.transpose()]);
    let words = &factor.transpose().to_owned();
    let c = combine(expected.words, words, &model.c, &from_c);
    Canonical::new(a, c, v, ClipMargins::EM)
}

/// x · of_x + c · of_c, overwriting x.
fn combine<T: Real>(mut x: Panel<T>, of_x: &Mat<f64>, c: &Panel<T>, of_c: &Mat<f64>) -> Panel<T> {
    let (n, stride) = (x.n_cols(), x.stride());
    let (of_x, of_c) = (RightFactor::<T>::new(of_x.as_ref()), RightFactor::<T>::new(of_c.as_ref()));
    x.par_blocks(256).for_each(|(first, block)| {
        let (copy, n_rows) = (block.to_vec(), block.len() / stride);
        let mut out = view_mut(block, n_rows, n, stride);
        let (x, c) = (view(&copy, n_rows, n, stride), c.view().subrows(first, n_rows));
        matmul(out.as_mut(), Accum::Replace, x, of_x.view());
        matmul(out, Accum::Add, c, of_c.view());
    });
    x
}
