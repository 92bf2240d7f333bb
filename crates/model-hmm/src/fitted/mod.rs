//! A fitted model in use: its probabilities, posteriors, scores, features and tags.

pub(crate) mod inspect;
pub(crate) mod sample;
pub(crate) mod posterior;
pub(crate) mod text;
pub(crate) mod together;
mod scoring;
pub(crate) mod encoder;
pub(crate) mod unknown_words;
pub(crate) mod tagger;
pub(crate) mod state_products;
pub(crate) mod expectations;
#[cfg(feature = "cuda")]
pub(crate) mod on_gpu;
