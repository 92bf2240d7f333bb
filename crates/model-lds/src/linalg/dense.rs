//! Small dense matrices in double precision.
//!
//! Each operation runs on one thread, except for large products, which are split the same way for any number of
//! threads. Small matrices are faster this way, and results do not depend on the number of threads.

use crate::linalg::error::NumericError;
use latens_math::Real;
use latens_math::linalg::{self, Accum, Mat, MatMut, MatRef, Singular, matmul};

/// The product of several matrices, from left to right.
pub(crate) fn product<const N: usize>(factors: [MatRef<'_, f64>; N]) -> Mat<f64> {
    let [first, second, others @ ..] = &factors[..] else { return factors[0].to_owned() };
    let mut result = product_of_two(*first, *second);
    for factor in others {
        result = product_of_two(result.as_ref(), *factor);
    }
    result
}

/// X + Y Z.
pub(crate) fn add_product(mut x: Mat<f64>, y: MatRef<'_, f64>, z: MatRef<'_, f64>) -> Mat<f64> {
    multiply(x.as_mut(), Accum::Add, y, z);
    x
}

fn product_of_two(x: MatRef<'_, f64>, y: MatRef<'_, f64>) -> Mat<f64> {
    let mut out = Mat::zeros(x.nrows(), y.ncols());
    multiply(out.as_mut(), Accum::Replace, x, y);
    out
}

/// Large products are split into two fixed halves of the columns, so that the result does not depend on the number
/// of threads. More parts would be too small for full speed.
fn multiply(out: MatMut<'_, f64>, accum: Accum, x: MatRef<'_, f64>, y: MatRef<'_, f64>) {
    let n = out.ncols();
    if n < 128 {
        return matmul(out, accum, x, y);
    }
    let half = (n / 2).next_multiple_of(4);
    let (left, right) = out.split_at_col_mut(half);
    let (y_left, y_right) = y.split_at_col(half);
    rayon::join(|| matmul(left, accum, x, y_left), || matmul(right, accum, x, y_right));
}

pub(crate) fn identity(n: usize) -> Mat<f64> {
    Mat::identity(n, n)
}

/// (X + Xᵀ) / 2.
pub(crate) fn symmetric(x: &Mat<f64>) -> Mat<f64> {
    let mut out = x + x.transpose();
    for j in 0..out.ncols() {
        out.col_as_slice_mut(j).iter_mut().for_each(|value| *value *= 0.5);
    }
    out
}

pub(crate) fn trace(x: &Mat<f64>) -> f64 {
    (0..x.nrows()).map(|i| x[(i, i)]).sum()
}

/// tr(X Y).
pub(crate) fn trace_of_product(x: &Mat<f64>, y: &Mat<f64>) -> f64 {
    let row = |i: usize| (0..x.ncols()).map(|j| x[(i, j)] * y[(j, i)]).sum::<f64>();
    (0..x.nrows()).map(row).sum()
}

/// The Frobenius norm.
pub(crate) fn frobenius(x: &Mat<f64>) -> f64 {
    // Independent partial sums can be vectorized; a single running sum cannot.
    let mut sums = [0.0; 16];
    for j in 0..x.ncols() {
        let (chunks, rest) = x.col_as_slice(j).as_chunks::<16>();
        for chunk in chunks {
            sums.iter_mut().zip(chunk).for_each(|(sum, value)| *sum += value * value);
        }
        sums.iter_mut().zip(rest).for_each(|(sum, value)| *sum += value * value);
    }
    sums.iter().sum::<f64>().sqrt()
}

pub(crate) fn is_finite(x: &Mat<f64>) -> bool {
    x.as_ref().col_iter().all(|column| column.iter().all(|value| value.is_finite()))
}

/// The lower triangular L with X = L Lᵀ.
pub(crate) fn cholesky(x: &Mat<f64>, name: &'static str) -> Result<Mat<f64>, NumericError> {
    let n = x.nrows();
    let mut factor = Mat::from_fn(n, n, |i, j| if i >= j { x[(i, j)] } else { 0.0 });
    if !linalg::cholesky(factor.as_mut()) {
        return Err(NumericError::NotPositiveDefinite(name));
    }
    let fine = (0..n).all(|i| factor[(i, i)] > 0.0) && is_finite(&factor);
    if fine { Ok(lower(&factor)) } else { Err(NumericError::NotPositiveDefinite(name)) }
}

fn lower(x: &Mat<f64>) -> Mat<f64> {
    Mat::from_fn(x.nrows(), x.ncols(), |i, j| if i >= j { x[(i, j)] } else { 0.0 })
}

/// ln det X from its Cholesky factor L: 2 Σ ln L_ii.
pub(crate) fn log_det(cholesky_factor: &Mat<f64>) -> f64 {
    (0..cholesky_factor.nrows()).map(|i| 2.0 * cholesky_factor[(i, i)].ln()).sum()
}

/// L⁻¹ X for a lower triangular L.
pub(crate) fn solve_lower(l: &Mat<f64>, mut x: Mat<f64>) -> Mat<f64> {
    linalg::solve_lower(l.as_ref(), x.as_mut());
    x
}

/// L⁻¹ of a lower triangular L.
pub(crate) fn inverse_lower(l: &Mat<f64>) -> Mat<f64> {
    solve_lower(l, identity(l.nrows()))
}

/// The eigendecomposition X = U diag(values) Uᵀ of a symmetric X, eigenvalues in ascending order.
pub(crate) struct Eigen {
    pub(crate) values: Vec<f64>,
    pub(crate) vectors: Mat<f64>,
}

pub(crate) fn eigen(x: &Mat<f64>, name: &'static str) -> Result<Eigen, NumericError> {
    if !is_finite(x) {
        return Err(NumericError::Eigenvalues(name));
    }
    let eigen = linalg::symmetric_eigen(x.as_ref()).ok_or(NumericError::Eigenvalues(name))?;
    Ok(Eigen { values: eigen.values, vectors: eigen.vectors })
}

impl Eigen {
    /// U diag(f(value)) Uᵀ.
    pub(crate) fn map(&self, f: impl Fn(f64) -> f64) -> Mat<f64> {
        let scaled =
            scale_columns(&self.vectors, &self.values.iter().map(|&x| f(x)).collect::<Vec<_>>());
        symmetric(&product([scaled.as_ref(), self.vectors.transpose()]))
    }

    pub(crate) fn least(&self) -> f64 {
        self.values.first().copied().unwrap_or(0.0)
    }

    pub(crate) fn greatest(&self) -> f64 {
        self.values.last().copied().unwrap_or(0.0)
    }
}

/// X diag(factors).
pub(crate) fn scale_columns(x: &Mat<f64>, factors: &[f64]) -> Mat<f64> {
    Mat::from_fn(x.nrows(), x.ncols(), |i, j| x[(i, j)] * factors[j])
}

/// The singular value decomposition X = U diag(s) Vᵀ of a square X, singular values in descending order.
pub(crate) fn singular(x: &Mat<f64>, name: &'static str) -> Result<Singular, NumericError> {
    if !is_finite(x) {
        return Err(NumericError::Eigenvalues(name));
    }
    linalg::singular(x.as_ref()).ok_or(NumericError::Eigenvalues(name))
}

/// The eigenvalues of a general square matrix, as real and imaginary parts.
pub(crate) fn eigenvalues(
    x: &Mat<f64>,
    name: &'static str,
) -> Result<Vec<(f64, f64)>, NumericError> {
    if !is_finite(x) {
        return Err(NumericError::Eigenvalues(name));
    }
    linalg::eigenvalues(x.as_ref()).ok_or(NumericError::Eigenvalues(name))
}

/// The spectral radius: the largest modulus of an eigenvalue.
pub(crate) fn spectral_radius(x: &Mat<f64>, name: &'static str) -> Result<f64, NumericError> {
    let moduli = eigenvalues(x, name)?.into_iter().map(|(re, im)| re.hypot(im));
    Ok(moduli.fold(0.0, f64::max))
}

/// The entries of a matrix in row-major order.
pub(crate) fn to_row_major<T: Real>(x: &Mat<f64>) -> Vec<T> {
    (0..x.nrows()).flat_map(|i| (0..x.ncols()).map(move |j| T::of(x[(i, j)]))).collect()
}

/// The square matrix with these entries in row-major order.
pub(crate) fn square_from_row_major(values: &[f64], dim: usize) -> Mat<f64> {
    Mat::from_fn(dim, dim, |i, j| values[i * dim + j])
}
