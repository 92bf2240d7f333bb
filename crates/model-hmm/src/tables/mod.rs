//! Tables of probabilities and of expected counts, for a whole model or for the states of a mini-batch.

pub(crate) mod probability_tables;
pub(crate) mod factors;
pub(crate) mod once_cache;
pub(crate) mod block_cache;
pub(crate) mod tag_table;
pub(crate) mod listed_ratios;
pub(crate) mod emitted;
pub(crate) mod expected_counts;
pub(crate) mod flush;
pub(crate) mod transition;
pub(crate) mod emission;
pub(crate) mod unknown_words;
