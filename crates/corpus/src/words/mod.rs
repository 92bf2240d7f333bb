//! Words: how text is split into them, their ids and their counts.

pub(crate) mod word_id;
pub(crate) mod normalize;
pub(crate) mod tokenize;
pub(crate) mod preprocessing;
pub(crate) mod vocab;
pub(crate) mod vocab_arrays;
