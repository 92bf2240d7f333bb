//! latens learns latent-variable models of text, and uses them to score, sample and explore text.
//!
//! This crate is the front door: it re-exports the others, and has the only list of all models.

mod any_model;
mod encoder;

pub use any_model::{AnyModel, open};
pub use encoder::{EncoderError, open_encoder};
pub use latens_corpus as corpus;
pub use latens_counts as counts;
pub use latens_math as math;
pub use latens_model as model;
pub use latens_model_brown as brown;
pub use latens_model_fhmm as fhmm;
pub use latens_model_hmm as hmm;
pub use latens_model_lda as lda;
pub use latens_model_lds as lds;
pub use latens_model_neural as neural;
pub use latens_model_ngram as ngram;
pub use latens_model_word2vec as word2vec;
pub use latens_store as store;
pub use latens_tasks as tasks;
