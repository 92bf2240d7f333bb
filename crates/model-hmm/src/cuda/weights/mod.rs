//! Maps weights to logits, and derivatives of logits to the gradient, on the device.

pub(crate) mod residual;
pub(crate) mod nets;
pub(crate) mod state_vectors;
pub(crate) mod networks;
pub(crate) mod logits;
