//! Text as arrays of token ids, as tokenizers of language models write it.

#[cfg(feature = "arrow")]
mod arrow;
mod items;
pub(crate) mod names;
pub(crate) mod npy;
pub(crate) mod npz;
pub(crate) mod reader;
#[cfg(test)]
mod tests;
