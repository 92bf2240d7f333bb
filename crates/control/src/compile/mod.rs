//! From constraints to automata over a vocabulary.

mod compiler;
mod atoms;

pub use compiler::{Alphabet, Compiled, MAX_STATES};
