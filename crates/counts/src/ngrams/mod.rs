//! N-gram counts.

mod context;
pub(crate) mod ngram_counts;
mod ngram_file;
