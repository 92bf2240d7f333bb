//! The model as a tagger.

mod hmm_tagger;
mod role;
#[cfg(feature = "cuda")]
pub(crate) mod on_gpu;

pub use hmm_tagger::HmmTagger;
