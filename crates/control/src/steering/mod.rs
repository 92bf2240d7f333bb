//! Language models that meet a constraint.

mod beam;
mod sampling;
mod steerer;

pub use steerer::{Generated, Steerer, check_vocabulary};
