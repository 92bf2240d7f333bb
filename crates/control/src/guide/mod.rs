//! Exact inference: how probable a constraint is under a hidden Markov model, given the beginning of a text.

mod cost;
mod edges;
mod layers;
mod lookahead;
mod products;
mod reading;
mod viterbi;

pub use lookahead::{Lengths, Lookahead, LookaheadOptions};
pub use reading::{Guide, NextWords, Reading};
pub use viterbi::MostProbable;
