//! Hidden Markov models of text, from a few states to many thousands.
//!
//! A hidden Markov model generates a sentence by a walk through hidden states, each of which emits a word. Word
//! clusters divide the states among them, so that only k states can emit a word. The exact probability of a
//! sentence then takes k² multiplications per word, regardless of the total number of states (Chiu and Rush 2020).
//! The probabilities are either scalar parameters, trained by expectation maximization or by gradient, or outputs of
//! neural networks over state embeddings, trained by gradient.
//!
//! ```
//! use latens_model::{Device, LanguageModel, Params, unwatched};
//! use latens_model_hmm::{Constraint, Hmm, HmmParams, Training};
//!
//! let corpus = latens_testkit::two_class_corpus(/* n_sentences */ 50, /* seed */ 1);
//! let params = HmmParams {
//!     n_states: 4, constraint: Constraint::None, dim: 8, epochs: 3, ..HmmParams::default()
//! };
//! let training = Training { corpus: &corpus, valid: None, clusters: None, tags: None, device: Device::Cpu };
//! let hmm = Hmm::fit(&params.validate()?, &training, &mut unwatched)?;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("toy.hmm");
//! hmm.save(&path)?;
//! let hmm = Hmm::open(&path)?;
//! assert!(hmm.log_prob(corpus.sentences.get(0)) < 0.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod params;
mod space;
mod tables;
mod weights;
mod recursion;
mod steps;
#[cfg(feature = "cuda")]
mod cuda;
mod train;
mod model;
mod fitted;
mod file;
#[cfg(test)]
mod tests;

pub use fitted::encoder::{Features, HmmEncoder};
pub use fitted::tagger::HmmTagger;
pub use model::{Hmm, Training};
pub use params::{
    Constraint, HmmParams, Learning, Memory, Parameterization, Schedule, Tying, WordVectors,
};
pub use space::clusters::text_to_cluster;
pub use train::tagged_text::{TaggedText, TagsError};
