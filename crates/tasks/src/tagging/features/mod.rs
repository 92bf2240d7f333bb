//! Features of tokens: lexical attributes and the rows of encoders, and a training text expressed in them.

pub(crate) mod template;
pub(crate) mod lexical;
pub(crate) mod word_encoder;
pub(crate) mod model_encoder;
pub(crate) mod encoder;
pub(crate) mod rows;
pub(crate) mod examples;
pub(crate) mod lists;
