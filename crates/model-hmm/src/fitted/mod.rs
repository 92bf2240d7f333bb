//! A fitted model in use: posteriors, scores, features and tags.

pub(crate) mod posterior;
pub(crate) mod scorer;
pub(crate) mod encoder;
pub(crate) mod unknown_words;
pub(crate) mod tagger;
