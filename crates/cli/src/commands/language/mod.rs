//! Commands that use language models: `latens perplexity`, `latens score`, `latens sample` and
//! `latens generate`.

mod drawing;
pub(crate) mod generate;
pub(crate) mod perplexity;
pub(crate) mod sample;
pub(crate) mod score;
