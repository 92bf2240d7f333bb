//! A fitted model on the device: log-probabilities and posteriors of text.

mod batches;
mod on_device;
pub(crate) mod log_probs;
pub(crate) mod posteriors;
#[cfg(test)]
mod tests;
