//! Inference in linear chains such as hidden Markov models and conditional random fields.
//!
//! A chain assigns weights to the states of each step and to pairs of states of neighboring steps. A path z_1 … z_T has
//! the weight Π_t local_t(z_t) · Π_t pair_t(z_t, z_{t+1}). The sum over all paths is the partition function (for a
//! hidden Markov model, the probability of the words), and the weight of a path divided by it is its posterior
//! probability. The number of states may differ from step to step.
//!
//! [`forward`], [`smooth`] and [`viterbi`] work with scaled weights, which is fast, and return `None` where the scale
//! underflows. [`log_forward`], [`log_smooth`] and [`log_viterbi`] compute the same in log space, which never
//! underflows. All are pure functions on the calling thread.

mod weights;
mod scaled;
mod viterbi;
mod sampling;
mod log;
mod max_sum;
mod n_best;
#[cfg(test)]
mod tests;

pub use log::{log_forward, log_smooth, log_viterbi};
pub use max_sum::max_sum;
pub use n_best::log_n_best;
pub use sampling::sample_path;
pub use scaled::{Filtered, SMALLEST_SCALE, Smoothed, add_edges, forward, smooth};
pub use viterbi::viterbi;
pub use weights::{Chain, LogChain};
