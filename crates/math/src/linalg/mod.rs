//! Dense linear algebra: the products and factorizations of `faer` that this project uses.
//!
//! `faer` is generic, so every crate that calls it compiles it again, which takes up to half a minute per crate in a
//! release build. The functions of this module are compiled once, for `f32` and `f64`. All other crates use them, and
//! the types that this module re-exports, instead of `faer` itself.

mod registers;
#[cfg(target_arch = "x86_64")]
mod wide;
mod tiles;
mod scalar;
mod block;
mod factors;
mod lu;

pub use block::{BlockProducts, BlockRef};
pub use factors::{
    Singular, SymmetricEigen, cholesky, eigenvalues, singular, solve_lower, symmetric_eigen,
};
pub use faer::{Accum, Mat, MatMut, MatRef, Par, Scale};
pub use lu::Lu;
pub use scalar::{Scalar, matmul, matmul_lower, multiply};
