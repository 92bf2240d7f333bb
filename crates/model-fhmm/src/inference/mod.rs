//! Posteriors of states: one chain per layer, mean field over all layers, and the exact joint chain.

pub(crate) mod layer_chain;
pub(crate) mod mean_field;
pub(crate) mod convergence;
pub(crate) mod joint_chain;
pub(crate) mod smoother;
#[cfg(test)]
pub(crate) mod fixtures;
#[cfg(test)]
mod tests;
