//! Counts a text in parallel, one batch at a time.

pub(crate) mod occurrences;
pub(crate) mod rows;
pub(crate) mod batches;
