//! Deterministic automata over symbols, which are grouped into classes.

mod classes;
mod dfa;
mod minimize;
mod product;

pub(crate) use classes::Classes;
pub use dfa::Automaton;
pub(crate) use dfa::MAX_ENTRIES;
pub(crate) use product::product;
