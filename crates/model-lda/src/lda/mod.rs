//! LDA with topics as distributions over words.

mod params;
mod types;
mod sampler;
mod cost;
mod fit;
mod shards;
mod model;
mod spelling;
mod online;
mod completion;
#[cfg(test)]
mod tests;

pub use completion::Completion;
pub use model::Lda;
pub use params::{LdaParams, LdaSampler};
pub use shards::LdaShards;
