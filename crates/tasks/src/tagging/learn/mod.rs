//! Training of a tagger.

pub(crate) mod data;
pub(crate) mod error;
pub(crate) mod cost;
pub(crate) mod fit;
pub(crate) mod early;
pub(crate) mod optimize;
pub(crate) mod objective;
pub(crate) mod sums;
pub(crate) mod perceptron;
