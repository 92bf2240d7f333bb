//! LDA with topics as Gaussians over word vectors.

mod params;
mod gaussian;
mod problem;
mod sampler;
mod kmeans;
mod types;
mod choice;
mod cost;
mod fit;
mod shards;
mod model;
mod online;
#[cfg(test)]
mod tests;

pub use fit::GldaInputs;
pub use model::Glda;
pub use online::{MoreVectors, Topics};
pub use params::{Covariance, GldaParams, Preset, Sampler, Start};
pub use shards::GldaShards;
