//! Weights, and the probabilities that are computed from them.

pub(crate) mod mapping;
pub(crate) mod scalar;
pub(crate) mod letters;
pub(crate) mod word_vectors;
pub(crate) mod state_vectors;
pub(crate) mod tags;
pub(crate) mod neural;
pub(crate) mod build;
