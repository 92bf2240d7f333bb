//! Commands that use language models: `latens perplexity`, `latens score` and `latens sample`.

pub(crate) mod perplexity;
pub(crate) mod sample;
pub(crate) mod score;
