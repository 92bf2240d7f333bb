//! Estimation in bounded memory. The result is that of [`crate::kneser_ney`], bit for bit.
//!
//! Counted n-grams arrive sorted by their reversed words, and `levels` writes the n-grams of every order to a temporary
//! file in that order. An n-gram `x u` needs A(h) and γ(h) of its history h = `x u⁻`, which is elsewhere in the level
//! below: a child of u⁻, the history of u. `estimate` therefore proceeds by order. It writes the children of each u to the
//! bucket that has the children of u⁻; each bucket is a range of the level below that fits in memory. Sums over a bucket
//! are made in the order of the n-grams, so that they round as in memory. Results return in the same order.

mod value;
mod levels;
mod bucket;
mod estimate;

pub(crate) use bucket::HISTORY_BYTES;
pub(crate) use estimate::{MAX_BUCKETS, estimate};
pub(crate) use levels::LevelWriter;
