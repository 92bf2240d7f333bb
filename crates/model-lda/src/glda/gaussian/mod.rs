//! Gaussian topics: their prior, their posterior, and densities of word vectors.

pub(super) mod vectors;
pub(super) mod prior;
pub(super) mod cholesky;
pub(super) mod topic;
pub(super) mod density;
pub(super) mod table;
