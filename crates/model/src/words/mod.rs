//! Word clusters and word vectors, which models exchange.

mod clusters;
mod vectors;
mod search;
mod vector_model;

pub use clusters::{ClustersError, WordClusters};
pub use vector_model::Vectors;
pub use vectors::{Coverage, NoVectors, WordVectors};
