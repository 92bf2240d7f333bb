//! Training, scores, posteriors and products on a CUDA device.

pub(crate) mod context;
pub(crate) mod plan;
pub(crate) mod sums;
pub(crate) mod tables;
pub(crate) mod recursion;
pub(crate) mod weights;
pub(crate) mod device_model;
pub(crate) mod score;
pub(crate) mod learner;
pub(crate) mod baum_welch;
pub(crate) mod expectations;
#[cfg(test)]
pub(crate) mod tests;
