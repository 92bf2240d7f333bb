//! Stepwise EM: expected counts, the M-step, and the training loop.

pub(crate) mod selection;
pub(crate) mod statistics;
pub(crate) mod normalizer;
pub(crate) mod score_update;
pub(crate) mod lbfgs;
pub(crate) mod m_step;
pub(crate) mod trainer;
#[cfg(test)]
mod tests;
