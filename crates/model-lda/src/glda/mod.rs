//! LDA whose topics are Gaussians over word vectors.

mod params;
mod vectors;
mod prior;
mod cholesky;
mod topic;
mod density;
mod table;
mod problem;
mod sampler;
mod kmeans;
#[cfg(test)]
mod tests;

pub use params::{Covariance, GldaParams, Preset, Sampler, Start};
