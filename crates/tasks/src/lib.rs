//! What models are for. Tasks know roles, not models.

pub mod analogies;
pub mod classification;
pub mod perplexity;
pub mod plot;
pub mod sampling;
pub mod tagging;
pub mod topics;

pub use perplexity::{Impossible, Perplexity, first_impossible, perplexity};
pub use sampling::sample;
