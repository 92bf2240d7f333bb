//! Factorizations of small matrices in double precision, on the calling thread.

use faer::diag::{Diag, DiagRef};
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::triangular_solve::solve_lower_triangular_in_place;
use faer::linalg::{cholesky, evd, svd};
use faer::{Mat, MatMut, MatRef, Par};

/// Replaces the lower triangle of X by L with X = L Lᵀ, and returns whether X is positive definite. Only the lower
/// triangle is read.
#[inline(never)]
pub fn cholesky(x: MatMut<'_, f64>) -> bool {
    let scratch = cholesky::llt::factor::cholesky_in_place_scratch::<f64>(
        x.nrows(),
        Par::Seq,
        Default::default(),
    );
    cholesky::llt::factor::cholesky_in_place(
        x,
        Default::default(),
        Par::Seq,
        MemStack::new(&mut MemBuffer::new(scratch)),
        Default::default(),
    )
    .is_ok()
}

/// Replaces X by L⁻¹ X for a lower triangular L.
#[inline(never)]
pub fn solve_lower(l: MatRef<'_, f64>, x: MatMut<'_, f64>) {
    solve_lower_triangular_in_place(l, x, Par::Seq);
}

/// X = U diag(values) Uᵀ of a symmetric X, values ascending.
#[derive(Clone, Debug)]
pub struct SymmetricEigen {
    /// Eigenvalues, ascending.
    pub values: Vec<f64>,
    /// U, with one eigenvector per column.
    pub vectors: Mat<f64>,
}

/// Returns the eigenvalues and eigenvectors of a symmetric matrix, or `None` if the iteration does not converge. Only
/// the lower triangle is read.
#[inline(never)]
pub fn symmetric_eigen(x: MatRef<'_, f64>) -> Option<SymmetricEigen> {
    let n = x.nrows();
    let (mut values, mut vectors) = (Diag::<f64>::zeros(n), Mat::zeros(n, n));
    let scratch = evd::self_adjoint_evd_scratch::<f64>(
        n,
        evd::ComputeEigenvectors::Yes,
        Par::Seq,
        Default::default(),
    );
    evd::self_adjoint_evd(
        x,
        values.as_mut(),
        Some(vectors.as_mut()),
        Par::Seq,
        MemStack::new(&mut MemBuffer::new(scratch)),
        Default::default(),
    )
    .ok()?;
    Some(SymmetricEigen { values: to_vec(values.as_ref()), vectors })
}

/// X = U diag(values) Vᵀ of a square X, values descending.
#[derive(Clone, Debug)]
pub struct Singular {
    /// Singular values, descending.
    pub values: Vec<f64>,
    /// U, with one left singular vector per column.
    pub left: Mat<f64>,
    /// V, with one right singular vector per column.
    pub right: Mat<f64>,
}

/// Returns the singular value decomposition of a square matrix, or `None` if the iteration does not converge.
#[inline(never)]
pub fn singular(x: MatRef<'_, f64>) -> Option<Singular> {
    let n = x.nrows();
    let mut values = Diag::<f64>::zeros(n);
    let (mut left, mut right) = (Mat::zeros(n, n), Mat::zeros(n, n));
    let scratch = svd::svd_scratch::<f64>(
        n,
        n,
        svd::ComputeSvdVectors::Full,
        svd::ComputeSvdVectors::Full,
        Par::Seq,
        Default::default(),
    );
    svd::svd(
        x,
        values.as_mut(),
        Some(left.as_mut()),
        Some(right.as_mut()),
        Par::Seq,
        MemStack::new(&mut MemBuffer::new(scratch)),
        Default::default(),
    )
    .ok()?;
    Some(Singular { values: to_vec(values.as_ref()), left, right })
}

/// Returns the real and imaginary parts of the eigenvalues of a square matrix, or `None` if the iteration does not
/// converge.
#[inline(never)]
pub fn eigenvalues(x: MatRef<'_, f64>) -> Option<Vec<(f64, f64)>> {
    let n = x.nrows();
    let (mut real, mut imaginary) = (Diag::<f64>::zeros(n), Diag::<f64>::zeros(n));
    let scratch = evd::evd_scratch::<f64>(
        n,
        evd::ComputeEigenvectors::No,
        evd::ComputeEigenvectors::No,
        Par::Seq,
        Default::default(),
    );
    evd::evd_real(
        x,
        real.as_mut(),
        imaginary.as_mut(),
        None,
        None,
        Par::Seq,
        MemStack::new(&mut MemBuffer::new(scratch)),
        Default::default(),
    )
    .ok()?;
    let (real, imaginary) = (to_vec(real.as_ref()), to_vec(imaginary.as_ref()));
    Some(real.into_iter().zip(imaginary).collect())
}

fn to_vec(diagonal: DiagRef<'_, f64>) -> Vec<f64> {
    diagonal.column_vector().iter().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    const N: usize = 7;

    fn random(seed: u64) -> Mat<f64> {
        let mut rng = Rng::new(seed);
        Mat::from_fn(N, N, |_, _| rng.normal())
    }

    fn lower(x: &Mat<f64>) -> Mat<f64> {
        Mat::from_fn(N, N, |i, j| if i >= j { x[(i, j)] } else { 0.0 })
    }

    fn diagonal(values: &[f64]) -> Mat<f64> {
        Mat::from_fn(N, N, |i, j| if i == j { values[i] } else { 0.0 })
    }

    fn assert_near(a: &Mat<f64>, b: &Mat<f64>) {
        assert!((a - b).norm_max() < 1e-12, "{a:?} and {b:?}");
    }

    #[test]
    fn a_cholesky_factor_times_itself_is_the_matrix() {
        let x = random(1);
        let x = &x * x.transpose();
        let mut factor = x.clone();
        assert!(cholesky(factor.as_mut()));
        let l = lower(&factor);
        assert_near(&(&l * l.transpose()), &x);
        assert!(!cholesky(diagonal(&[1.0, -1.0, 1.0, 1.0, 1.0, 1.0, 1.0]).as_mut()));
    }

    #[test]
    fn triangular_solutions_solve_the_equation() {
        let (l, x) = (lower(&random(2)), random(3));
        let mut solution = &l * &x;
        solve_lower(l.as_ref(), solution.as_mut());
        assert!((&solution - &x).norm_max() < 1e-9);
    }

    #[test]
    fn eigenvectors_and_singular_vectors_give_the_matrix_back() {
        let x = random(4);
        let found = singular(x.as_ref()).unwrap();
        assert_near(&(&found.left * diagonal(&found.values) * found.right.transpose()), &x);
        assert!(found.values.is_sorted_by(|a, b| a >= b));
        let x = &x + x.transpose();
        let found = symmetric_eigen(x.as_ref()).unwrap();
        assert_near(&(&found.vectors * diagonal(&found.values) * found.vectors.transpose()), &x);
        assert!(found.values.is_sorted());
    }

    #[test]
    fn eigenvalues_of_a_rotation_are_complex() {
        let rotation = Mat::from_fn(2, 2, |i, j| [[0.6, -0.8], [0.8, 0.6]][i][j]);
        let mut found = eigenvalues(rotation.as_ref()).unwrap();
        found.sort_by(|a, b| a.1.total_cmp(&b.1));
        for ((real, imaginary), expected) in found.into_iter().zip([-0.8, 0.8]) {
            assert!((real - 0.6).abs() < 1e-15 && (imaginary - expected).abs() < 1e-15);
        }
    }
}
