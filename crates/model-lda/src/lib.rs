//! Topic models.
mod alias_table;
mod counts;
mod dirichlet;
mod documents;
mod draw;
mod sharing;
mod glda;

pub use glda::{Covariance, GldaParams, Preset, Sampler, Start};
