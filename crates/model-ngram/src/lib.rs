//! n-gram language models: the probability of a word given the n − 1 words before it, estimated from
//! counts by interpolated modified Kneser–Ney smoothing (Chen & Goodman 1998).

mod params;
mod kneser_ney;
mod fit;
mod trie;
mod scorer;
mod model;
mod file;
mod arpa;

pub use arpa::ArpaError;
pub use model::Ngram;
pub use params::{MAX_ORDER, NgramParams};
