//! Neural language models: feed-forward n-grams, simple recurrent networks, long short-term memory.
//!
//! A word is a vector, layers make one vector of those of the words before, and the next word is chosen by a softmax over
//! the vocabulary. A feed-forward network sees the last words only; recurrent networks carry a state from word to word,
//! over the ends of sentences if so wanted. They learn by gradient from mini-batches of streams: the text is read at
//! several places at once, a few words further in each step, and derivatives go back to the beginning of the step
//! (truncated backpropagation through time).
//!
//! ```
//! use latens_model::{Fit, LanguageModel};
//! use latens_model_neural::Neural;
//!
//! let corpus = latens_testkit::two_class_corpus(/* n_sentences */ 50, /* seed */ 1);
//! let rnn = Neural::rnn().dim(8).epochs(2).fit(&corpus)?;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("toy.rnn");
//! rnn.save(&path)?;
//! let rnn = Neural::open(&path)?;
//! assert!(rnn.log_prob(corpus.sentences.get(0)) < 0.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod params;
mod batches;
mod network;
mod learner;
#[cfg(feature = "cuda")]
mod cuda;
mod first_weights;
mod fit;
mod model;
mod scorer;
mod file;

pub use first_weights::FirstWeights;
pub use latens_nn::Squash;
pub use model::{Neural, NeuralInputs, usable_device};
pub use params::{Architecture, Memory, NeuralParams, Optimizer, Schedule, Tying};
