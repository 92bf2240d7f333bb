//! What models exchange about words: clusters and vectors.

mod clusters;
mod vectors;
mod vector_model;

pub use clusters::{ClustersError, WordClusters};
pub use vector_model::Vectors;
pub use vectors::{Coverage, NoVectors, WordVectors};
