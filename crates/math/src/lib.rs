//! Numeric building blocks: linear algebra, linear chains, optimization and sampling. Independent of
//! text.
//!
//! | Module | Contents |
//! |---|---|
//! | [`linalg`] | matrix products and factorizations |
//! | [`sparse`] | sparse matrices and their products with dense ones |
//! | [`rows`] | parallel loops over chunks of rows |
//! | [`chain`] | forward–backward, Viterbi and sampling in linear chains |
//! | [`lbfgs`] | L-BFGS and OWL-QN |
//! | [`hogwild`] | matrices that threads update without locks |
//!
//! Except in [`hogwild`], results do not depend on the number of threads.
//!
//! ```
//! use latens_math::{Rng, log_sum_exp, sample_log_index, softmax};
//!
//! let mut row = [0.0f32, 2f32.ln(), f32::NEG_INFINITY];
//! let normalizer = softmax(&mut row);
//! assert!((normalizer - 3f32.ln()).abs() < 1e-6);
//! assert!((row[1] - 2.0 / 3.0).abs() < 1e-6 && row[2] == 0.0);
//!
//! let log_weights = [-1000.0, f64::NEG_INFINITY];
//! assert_eq!(log_sum_exp(&log_weights), -1000.0);
//! assert_eq!(sample_log_index(&log_weights, &mut Rng::new(1)), 0);
//! ```

mod real;
mod aligned;
mod sums;
mod vectorized;
mod prefetch;
mod softmax;
mod log_space;
mod matrix;
mod gamma;
mod random;
pub mod rows;
pub mod linalg;
pub mod sparse;
pub mod chain;
pub mod lbfgs;
pub mod hogwild;
mod once;

pub use aligned::Aligned;
pub use gamma::{digamma, ln_gamma};
pub use linalg::BlockRef;
pub use log_space::{log_add, log_sum_exp};
pub use matrix::Matrix;
pub use once::get_or_compute;
pub use prefetch::prefetch;
pub use random::{AliasTable, BatchPlace, Rng, sample_index, sample_log_index};
pub use real::Real;
pub use softmax::{softmax, softmax_columns};
pub use sparse::{Csr, Strip};
pub use sums::{dot, dot_wide, sum_of};
pub use vectorized::vectorized;
