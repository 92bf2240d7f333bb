//! Neural language models: feed-forward n-grams, simple recurrent networks and LSTMs.
//!
//! Each word has an embedding. Hidden layers map the embeddings of the preceding words to a hidden vector, and a softmax
//! over the vocabulary predicts the next word. A feed-forward network has a fixed context of words. Recurrent networks
//! carry a state from word to word, optionally across sentence boundaries. They are trained on mini-batches of parallel
//! streams of text by truncated backpropagation through time.
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
mod network;
mod learner;
#[cfg(feature = "cuda")]
mod cuda;
mod cost;
mod fit;
mod model;
mod sampler;
mod batch_scorer;
mod scorer;
mod file;

pub use latens_nn::Squash;
pub use model::{Neural, NeuralInputs, usable_device};
pub use network::first_weights::FirstWeights;
pub use params::{Architecture, Mask, Memory, NeuralParams, Optimizer, Schedule, Tying};
