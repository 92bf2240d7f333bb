//! A fitted model on the device: log-probabilities, posteriors and most likely paths of text.

mod batches;
mod on_device;
mod of_batch;
mod posteriors;
mod paths;
pub(crate) mod log_probs;
pub(crate) mod states;
#[cfg(test)]
mod tests;
