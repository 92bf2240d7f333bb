//! Minimization of smooth functions from values and gradients: L-BFGS (Liu and Nocedal 1989), and OWL-QN (Andrew and
//! Gao 2007) where a multiple of Σ|x| is added.
//!
//! [`Lbfgs`] makes one step at a time and exposes its whole state, so that a trainer can report progress, stop, and
//! resume from a checkpoint with the same numbers. All sums are over fixed blocks, so that the result does not depend on
//! the number of threads.
//!
//! ```
//! use latens_math::lbfgs::{Lbfgs, LbfgsParams, Outcome};
//!
//! // (x − 3)² + 10 (y + 1)²
//! let mut bowl = |x: &[f64], gradient: &mut [f64]| {
//!     gradient.copy_from_slice(&[2.0 * (x[0] - 3.0), 20.0 * (x[1] + 1.0)]);
//!     (x[0] - 3.0).powi(2) + 10.0 * (x[1] + 1.0).powi(2)
//! };
//! let mut search = Lbfgs::start(LbfgsParams::default(), vec![0.0; 2], &mut bowl);
//! while search.step(&mut bowl) == Outcome::Improved {}
//! assert!((search.x()[0] - 3.0).abs() < 1e-4 && (search.x()[1] + 1.0).abs() < 1e-4);
//! ```

mod function;
mod vectors;
mod line_search;
mod orthant;
mod search;
#[cfg(test)]
mod tests;

pub use function::{Function, PartialFunction, Unknown};
pub use search::{Lbfgs, LbfgsParams, LbfgsState, Outcome, Pair};
