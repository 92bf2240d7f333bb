//! Probabilities of a model, or of the part of it that a mini-batch uses.

pub(crate) mod probability_tables;
pub(crate) mod transition;
pub(crate) mod emission;
pub(crate) mod listed_emission;
