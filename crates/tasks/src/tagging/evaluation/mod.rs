//! Evaluation of taggers.

pub(crate) mod tagged;
pub(crate) mod per_type;
pub(crate) mod scores;
pub(crate) mod compare;
pub(crate) mod bootstrap;
