//! Numeric building blocks. There are no words here: slices and matrices in, numbers out.

pub mod chain;
mod gamma;
pub mod hogwild;
pub mod lbfgs;
pub mod linalg;
mod real;
mod log_space;
mod matrix;
mod products;
mod rng;
pub mod rows;
mod sampling;
mod sparse;
mod strips;

pub use gamma::{digamma, ln_gamma};
pub use log_space::{log_add, log_sum_exp};
pub use matrix::Matrix;
pub use products::BlockRef;
pub use real::{Real, softmax, softmax_columns};
pub use rng::Rng;
pub use sampling::{sample_index, sample_log_index};
pub use sparse::Csr;
pub use strips::{SparseProduct, Strip};
