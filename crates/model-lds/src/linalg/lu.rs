//! Linear systems of small matrices, by LU factorization.

use crate::linalg::dense::{identity, is_finite};
use crate::linalg::error::NumericError;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::lu;
use faer::perm::PermRef;
use faer::{Mat, Par};

/// The LU factorization of a square matrix, with partial pivoting.
pub(crate) struct Lu {
    factors: Mat<f64>,
    forward: Vec<usize>,
    backward: Vec<usize>,
}

impl Lu {
    pub(crate) fn new(x: &Mat<f64>) -> Lu {
        let (n, mut factors) = (x.nrows(), x.clone());
        let (mut forward, mut backward) = (vec![0usize; n], vec![0usize; n]);
        let scratch = lu::partial_pivoting::factor::lu_in_place_scratch::<usize, f64>(
            n,
            n,
            Par::Seq,
            Default::default(),
        );
        lu::partial_pivoting::factor::lu_in_place(
            factors.as_mut(),
            &mut forward,
            &mut backward,
            Par::Seq,
            MemStack::new(&mut MemBuffer::new(scratch)),
            Default::default(),
        );
        Lu { factors, forward, backward }
    }

    /// X⁻¹ Y.
    pub(crate) fn solve(&self, y: &Mat<f64>, name: &'static str) -> Result<Mat<f64>, NumericError> {
        let n = self.factors.nrows();
        let mut out = y.clone();
        let scratch = lu::partial_pivoting::solve::solve_in_place_scratch::<usize, f64>(
            n,
            y.ncols(),
            Par::Seq,
        );
        lu::partial_pivoting::solve::solve_in_place(
            self.factors.as_ref(),
            self.factors.as_ref(),
            PermRef::new_checked(&self.forward, &self.backward, n),
            out.as_mut(),
            Par::Seq,
            MemStack::new(&mut MemBuffer::new(scratch)),
        );
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
