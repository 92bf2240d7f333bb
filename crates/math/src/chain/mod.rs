//! Linear chains: weights of single steps and of neighbouring steps, and what all paths through them
//! add up to. Hidden Markov models and conditional random fields are chains.
//!
//! A path z_1 … z_T weighs Π_t local_t(z_t) · Π_t pair_t(z_t, z_{t+1}); the sum over all paths is the
//! partition value (for a hidden Markov model the probability of the words), and a path's share in it
//! its posterior probability. Every step can have another number of states.
//!
//! [`forward`], [`smooth`] and [`viterbi`] work with scaled weights, which is fast, and say so where the
//! scale is too small for that; then [`log_forward`], [`log_smooth`] and [`log_viterbi`] do the same
//! with logarithms, which is always exact. All are pure functions: no words, no files, no threads.

mod log;
mod max_sum;
mod sampling;
mod scaled;
#[cfg(test)]
mod tests;
mod viterbi;

pub use log::{LogChain, log_forward, log_smooth, log_viterbi};
pub use max_sum::max_sum;
pub use sampling::sample_path;
pub use scaled::{Filtered, SMALLEST_SCALE, Smoothed, add_edges, forward, smooth};
pub use viterbi::viterbi;

/// A chain of at least one step, with non-negative weights.
pub trait Chain<T> {
    /// How many steps there are: T.
    fn n_steps(&self) -> usize;

    /// The weight of each state of a step; initial probabilities are part of the first step's.
    fn local(&self, step: usize) -> &[T];

    /// The weight of each pair of a state of `step`, its row, and a state of the step after it, its column.
    fn pairs(&self, step: usize) -> &[T];
}
