//! Hidden Markov models of text, from a few states to many thousands.
//!
//! A hidden Markov model generates a sentence by a walk through hidden states, each of which emits a word. Word
//! clusters divide the states among them, so that only k states can emit a word. The exact probability of a
//! sentence then takes k² multiplications per word, regardless of the total number of states (Chiu and Rush 2020).
//! The probabilities are either scalar parameters, trained by expectation maximization or by gradient, or outputs of
//! neural networks over state embeddings, trained by gradient.
//!
//! ```
//! use latens_model::{Fit, LanguageModel};
//! use latens_model_hmm::{Constraint, Hmm};
//!
//! let corpus = latens_testkit::two_class_corpus(/* n_sentences */ 50, /* seed */ 1);
//! let hmm = Hmm::params().n_states(4).constraint(Constraint::None).dim(8).epochs(3).fit(&corpus)?;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("toy.hmm");
//! hmm.save(&path)?;
//! let hmm = Hmm::open(&path)?;
//! assert!(hmm.log_prob(corpus.sentences.get(0)) < 0.0);
//!
//! // Rows are tokens, columns are states.
//! let posterior = hmm.posterior("a0 b0 a1")?;
//! assert_eq!((posterior.n_rows(), posterior.n_columns()), (3, 4));
//! println!("{:?}", hmm.top_words(/* state */ 0, /* n */ 3));
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
mod probabilities;
mod cost;
mod fit;
mod fitted;
mod file;
mod shards;
mod roles;
#[cfg(test)]
mod tests;

pub use fit::HmmInputs;
pub use fitted::encoder::{Features, HmmEncoder};
pub use fitted::expectations::Expectations;
pub use fitted::sample::StateSample;
pub use fitted::state_products::EmittingStates;
pub use fitted::tagger::HmmTagger;
pub use fitted::text::ImpossibleText;
pub use model::Hmm;
pub use params::{
    Constraint, HmmParams, Learning, Memory, Parameterization, Schedule, Tying, WordEmbedding,
};
pub use shards::{HmmShards, HmmText};
pub use space::clusters::text_to_cluster;
pub use train::tagged_text::{TaggedText, TagsError};
pub use train::teacher::Teacher;
