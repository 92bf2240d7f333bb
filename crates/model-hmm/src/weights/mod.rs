//! The weights that probabilities are computed from.

pub(crate) mod mapping;
pub(crate) mod scalar;
pub(crate) mod neural;
pub(crate) mod state_vectors;
pub(crate) mod word_vectors;
pub(crate) mod letters;
