//! The ARPA format of n-gram language models, which most toolkits read and write.
//!
//! It has base-10 logarithms, and `<s>` and `</s>` around a sentence.

mod format;
mod write;
mod complete;
mod read;

pub use format::ArpaError;
