//! Heads: what turns the scores of tokens into probabilities of tags.

pub(crate) mod chain;
pub(crate) mod local;
pub(crate) mod shard;
