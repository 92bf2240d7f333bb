//! Learning from the parts of a text, on several processes or machines.
//!
//! Counts, expected counts and gradients of the parts of a text add up to those of the whole. A model that implements
//! [`Sharded`] is learned in rounds: every shard computes its statistics under the current [`Broadcast`], statistics
//! merge, and an update makes the next broadcast or the model. Each of these steps maps bytes to bytes, so that any
//! engine can carry them: [`ShardKind`] is what a driver calls.
//!
//! The number of shards is part of a run; the number of workers is not. [`Statistics`] merge along a fixed binary tree
//! over shard numbers, so that the bits of a floating-point sum do not depend on who was faster.

mod arrays;
mod error;
mod packing;
mod state;
mod broadcast;
mod statistics;
mod contract;
mod kind;
mod vocabulary;

pub use arrays::{Arrays, Numbers, ShardNumber};
pub use broadcast::Broadcast;
pub use contract::{Computed, Job, Part, ShardInput, Sharded, Step};
pub use error::ShardError;
pub use kind::{EncodedPart, KindOf, Round, ShardKind};
pub use state::ShardState;
pub use statistics::Statistics;
pub use vocabulary::{VocabCounts, VocabParams};
