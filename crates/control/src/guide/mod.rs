//! Exact inference: how probable a constraint is under a hidden Markov model, given the beginning of a text.

mod options;
mod edges;
mod layers;
mod lookahead;
mod cost;
mod products;
mod reading;
mod viterbi;

pub use lookahead::Lookahead;
pub use options::{Lengths, LookaheadOptions};
pub use reading::{Guide, NextWords, Reading};
pub use viterbi::MostProbable;
