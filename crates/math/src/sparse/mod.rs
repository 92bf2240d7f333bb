//! Sparse matrices, and their products with dense ones.

mod csr;
mod strip;

pub use csr::Csr;
pub use strip::{Strip, StripProducts};
