//! Recurrent layers over parallel streams.

mod streams;
mod elman;
mod lstm;

pub use elman::{Elman, ElmanScratch};
pub use lstm::{Lstm, LstmScratch};
pub use streams::{Squash, Streams};
