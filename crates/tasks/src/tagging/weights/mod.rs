//! The weights of a tagger: while it learns, and fitted.

pub(crate) mod layout;
pub(crate) mod fitted;
