//! Many sentences together.
//!
//! A step of one sentence multiplies a vector with a block of transitions, which takes as long as reading the block from
//! memory. Sentences that need the same block share one product of matrices.

pub(crate) mod waiting;
pub(crate) mod products;
mod posteriors;
mod maxima;
mod paths;
mod role;

pub(crate) use role::max_tokens;
