//! Factorial hidden Markov models (Nepal & Yates 2013).

pub(crate) mod tagging;
pub(crate) mod tuned;
pub(crate) mod measures;
pub(crate) mod paper;
