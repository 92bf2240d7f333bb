//! Random numbers whose seeds keep their meaning.

mod rng;
mod gamma;
mod index;
mod alias;

pub use alias::AliasTable;
pub use index::{sample_index, sample_log_index};
pub use rng::{BatchPlace, Rng};
