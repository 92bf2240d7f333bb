//! The mini-batches and the steps of training, on some device.

pub(crate) mod batches;
pub(crate) mod learner;
pub(crate) mod counts;
pub(crate) mod estimator;
