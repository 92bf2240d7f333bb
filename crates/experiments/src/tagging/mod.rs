//! Tagging experiments: representations of words × tasks × taggers.

pub(crate) mod task;
pub(crate) mod representation;
pub(crate) mod runner;
