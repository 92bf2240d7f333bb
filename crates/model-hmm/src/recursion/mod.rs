//! The forward–backward recursion over a batch of sentences.

pub(crate) mod scaled;
pub(crate) mod log_space;
pub(crate) mod expected_counts;
