//! The fitted model: its probabilities, sentences, samples, features, and file.

pub(crate) mod model;
mod fit;
mod inspect;
mod sentence;
pub(crate) mod sample;
pub(crate) mod encoder;
mod file;
