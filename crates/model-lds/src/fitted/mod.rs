//! Uses of a fitted model.

pub(crate) mod filter;
pub(crate) mod encoder;
pub(crate) mod prediction;
pub(crate) mod inspect;
pub(crate) mod singular_pairs;
pub(crate) mod rnn_weights;
pub(crate) mod roles;
