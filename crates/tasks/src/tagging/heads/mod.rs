//! Heads: they map the scores of tokens to probabilities of tags.

pub(crate) mod chain;
pub(crate) mod local;
pub(crate) mod shard;
