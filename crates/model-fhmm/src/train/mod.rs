//! Stepwise EM: expected counts, the M-step, and the training loop.

pub(crate) mod statistics;
mod normalizer;
mod score_update;
pub(crate) mod lazy_update;
mod lbfgs;
pub(crate) mod m_step;
pub(crate) mod task;
pub(crate) mod state;
mod checkpoint;
pub(crate) mod trainer;
#[cfg(test)]
mod tests;
