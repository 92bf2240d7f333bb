//! Evaluation of taggers.

pub(crate) mod tagged;
pub(crate) mod scores;
pub(crate) mod compare;
