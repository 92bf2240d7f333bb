//! A fitted tagger, and its file.

pub(crate) mod tagger;
pub(crate) mod fitted_encoder;
pub(crate) mod scores;
pub(crate) mod predict;
mod on_gpu;
pub(crate) mod posterior;
pub(crate) mod contributions;
pub(crate) mod tag_names;
pub(crate) mod direct;
pub(crate) mod word_scores;
pub(crate) mod file;
