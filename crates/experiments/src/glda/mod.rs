//! Gaussian LDA (Das et al. 2015).

pub(crate) mod topics;
pub(crate) mod speed;
pub(crate) mod oov;
