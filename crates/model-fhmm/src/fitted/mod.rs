//! The fitted model, its features, and its file.

pub(crate) mod model;
pub(crate) mod encoder;
mod file;
