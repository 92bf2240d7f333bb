//! What a fitted model can do.

pub(crate) mod block_cache;
pub(crate) mod tags;
pub(crate) mod posterior;
pub(crate) mod unknown_words;
pub(crate) mod scorer;
pub(crate) mod encoder;
pub(crate) mod tagger;
