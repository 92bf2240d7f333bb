//! Hidden Markov models of text, from a few states to very many.
//!
//! A sentence is made by a walk through hidden states, each of which emits a word. Clusters of words share
//! the states, so that a word can come from few of them: then the exact probability of a sentence costs
//! k² multiplications a word, with k states a cluster, however many states there are in all (Chiu and Rush
//! 2020). The probabilities are numbers of their own, learned by expectation maximisation or by gradient, or
//! networks of state vectors, learned by gradient; the recursion never knows which.
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
mod train;
#[cfg(feature = "cuda")]
mod cuda;
mod model;
mod fitted;
mod file;
#[cfg(test)]
mod tests;

pub use fitted::encoder::{Features, HmmEncoder};
pub use fitted::tagger::HmmTagger;
pub use fitted::unknown_words::text_to_cluster;
pub use model::{Hmm, Training};
pub use params::{
    Constraint, HmmParams, Learning, Memory, Parameterization, Schedule, Tying, WordVectors,
};
pub use train::tagged_text::{TaggedText, TagsError};
