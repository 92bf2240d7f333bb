//! Text in which tokens have columns of tags, and text that will get them.

pub(crate) mod tagged;
pub(crate) mod guess;
pub(crate) mod to_tag;
