use thiserror::Error;

/// A numerical failure; each variant names the matrix or the iteration that failed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum NumericError {
    /// The matrix has no Cholesky factor.
    #[error("{0} is not positive definite")]
    NotPositiveDefinite(&'static str),
    /// The matrix has no inverse.
    #[error("{0} is singular")]
    Singular(&'static str),
    /// The eigenvalue or singular value decomposition failed.
    #[error("cannot compute the eigenvalues or singular values of {0}")]
    Eigenvalues(&'static str),
    /// The iteration did not converge.
    #[error("{0} did not converge")]
    NotConverged(&'static str),
}
