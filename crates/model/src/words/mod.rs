//! Word clusters and word vectors, which models exchange.

mod clusters;
mod vectors;
mod search;

pub use clusters::{ClustersError, WordClusters};
pub use vectors::{Coverage, NoVectors, WordVectors};
