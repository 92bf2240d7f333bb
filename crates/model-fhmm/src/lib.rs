//! Factorial hidden Markov models of text: several layers of hidden states per word (Nepal and Yates 2013).
//!
//! Each of M layers is a Markov chain over K states, and the states of all layers together emit a word:
//! p(Y | s) ∝ exp(b_Y + Σ_m θ[Y, m, s^m]). The Kᴹ joint states thus need only M K scores per word.
//!
//! Structured mean field approximates the posterior by a product of chains, one per layer. By default,
//! the normalizer of the emission is exact, from a table of all joint states that is computed once
//! per M-step; the paper bounds it for every token.
//! Training is stepwise EM. A fitted model encodes each token by the states of all layers.
//!
//! ```
//! use latens_model::Fit;
//! use latens_model_fhmm::Fhmm;
//!
//! let corpus = latens_testkit::two_class_corpus(/* n_sentences */ 100, /* seed */ 1);
//! let fhmm = Fhmm::params().n_layers(2).n_states(3).epochs(2).fit(&corpus)?;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("toy.fhmm");
//! fhmm.save(&path)?;
//! let fhmm = Fhmm::open(&path)?;
//! let posterior = fhmm.posterior("a0 b1 a2");
//! assert_eq!((posterior.n_rows(), posterior.n_columns()), (3, 2 * 3));
//! println!("{:?}", fhmm.top_words(/* layer */ 0, /* state */ 1, 10));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod params;
mod shape;
mod tensor;
mod distribution;
mod word_rows;
mod selection;
mod emission;
mod inference;
mod train;
mod cost;
mod fitted;
mod shards;

pub use fitted::encoder::{Features, FhmmEncoder};
pub use fitted::model::Fhmm;
pub use fitted::sample::StateSample;
pub use params::{BaseMeasure, FhmmParams, Inference, MStep, Unknown};
pub use selection::frequent_sentences;
pub use shards::FhmmShards;
