//! Latent-variable models of text: hidden Markov models with tens of thousands of states, linear
//! dynamical systems, Brown clusters, word vectors, topic models, language models and taggers.
//!
//! Import the [`prelude`], read a corpus, set parameters and call `fit`:
//!
//! ```
//! use latens::prelude::*;
//!
//! let lines = ["the cat sleeps", "a dog barks", "the dog sleeps", "a cat walks"];
//! let corpus = Corpus::from_lines(lines)?;
//!
//! // A hidden Markov model. Its word clusters are learned if they are not given.
//! let hmm = Hmm::params().n_states(8).n_clusters(2).dim(8).epochs(2).fit(&corpus)?;
//! let posterior = hmm.posterior("the cat sleeps")?; // one row per token, one column per state
//! assert_eq!((posterior.n_rows(), posterior.n_columns()), (3, 8));
//! println!("state 3 emits {:?}", hmm.top_words(3, 10));
//!
//! // Every language model scores text.
//! let held_out = corpus.lexicon.sentences(["a dog sleeps"]);
//! println!("perplexity {:.1}", perplexity(&hmm, &held_out).perplexity());
//!
//! // Topics of documents.
//! let texts = ["goals and balls", "pans and pots", "a ball in the goal", "a pot in the pan"];
//! let topics = Lda::params().n_topics(2).n_iterations(20).fit(&Documents::from_texts(texts)?)?;
//! let mixtures = topics.infer(["balls and goals"]); // one row per document, one column per topic
//! assert_eq!(mixtures.n_columns(), 2);
//!
//! // A model is a single file, and `open` detects its kind.
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("toy.hmm");
//! hmm.save(&path)?;
//! assert_eq!(latens::open(&path)?.kind(), "hmm");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Fit`](model::Fit) describes the other options of a fit: a validation set, a progress callback, a
//! checkpoint to resume from, a device. The modules below re-export the crates of the workspace.

/// Matrices, random numbers and dot products: a selection from `latens_math`.
pub mod math {
    pub use latens_math::{Matrix, Rng, dot_wide};
}

mod kinds;
mod open;
mod shards;
pub mod prelude;

pub use kinds::{KINDS, ModelKind, ReadModel};
pub use latens_control as control;
pub use latens_corpus as corpus;
pub use latens_counts as counts;
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
pub use open::{OpenEncoderError, from_bytes, open, open_encoder};
pub use shards::{SHARD_KINDS, fit_shards, shard_kind};
