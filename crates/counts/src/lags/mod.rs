//! Counts of word pairs at fixed distances.

pub(crate) mod lag_matrix;
mod tally;
pub(crate) mod lag_counts;
mod lag_file;
