//! Word vectors from characters: convolution and the maximum over time.

mod spellings;
mod windows;
mod conv;
mod symbols;
mod char_cnn;

pub use char_cnn::{CharCnn, CharCnnParams, CharCnnScratch};
pub use conv::{Conv, ConvScratch};
pub use spellings::Spellings;
pub use windows::Sequences;
