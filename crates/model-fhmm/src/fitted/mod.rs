//! The fitted model, its features, and its file.

pub(crate) mod model;
mod fit;
pub(crate) mod encoder;
mod file;
