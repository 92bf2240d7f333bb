//! Linear systems of small matrices, by LU factorization.

use crate::linalg::dense::{identity, is_finite};
use crate::linalg::error::NumericError;
use latens_math::linalg::{self, Mat};

/// The LU factorization of a square matrix, with partial pivoting.
pub(crate) struct Lu(linalg::Lu);

impl Lu {
    pub(crate) fn new(x: &Mat<f64>) -> Lu {
        Lu(linalg::Lu::new(x.as_ref()))
    }

    /// X⁻¹ Y.
    pub(crate) fn solve(&self, y: &Mat<f64>, name: &'static str) -> Result<Mat<f64>, NumericError> {
        let mut out = y.clone();
        self.0.solve(out.as_mut());
        if is_finite(&out) { Ok(out) } else { Err(NumericError::Singular(name)) }
    }
}

/// X⁻¹ Y.
pub(crate) fn solve(
    x: &Mat<f64>,
    y: &Mat<f64>,
    name: &'static str,
) -> Result<Mat<f64>, NumericError> {
    Lu::new(x).solve(y, name)
}

/// Y X⁻¹.
pub(crate) fn solve_right(
    y: &Mat<f64>,
    x: &Mat<f64>,
    name: &'static str,
) -> Result<Mat<f64>, NumericError> {
    let solved = solve(&x.transpose().to_owned(), &y.transpose().to_owned(), name)?;
    Ok(solved.transpose().to_owned())
}

pub(crate) fn inverse(x: &Mat<f64>, name: &'static str) -> Result<Mat<f64>, NumericError> {
    solve(x, &identity(x.nrows()), name)
}
