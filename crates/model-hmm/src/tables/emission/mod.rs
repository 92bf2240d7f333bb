//! Emission probabilities and their gradient.

pub(crate) mod vectors;
pub(crate) mod clustered;
pub(crate) mod listed;
pub(crate) mod listed_kernels;
