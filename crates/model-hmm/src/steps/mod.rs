//! The steps of training, on some device.

pub(crate) mod learner;
pub(crate) mod counts;
pub(crate) mod estimator;
