//! The fitted model: its probabilities, sentences, samples, features, and file.

pub(crate) mod model;
pub(crate) mod fit;
mod inspect;
mod sentence;
pub(crate) mod sample;
pub(crate) mod encoder;
mod file;
