//! Factorial hidden Markov models of text: several layers of states behind every word.
//!
//! In each of M layers a chain walks through K states, and the states of all layers together decide which word comes:
//! p(Y | s) ∝ exp(b_Y + Σ_m θ[Y, m, s^m]). So Kᴹ states are described by M K scores a word (Nepal and Yates 2013).
//! The posterior is a product of chains, one a layer (structured mean field); the normaliser of words is exact, from a
//! table of all joint states that is made once an M-step, where the paper bounds it for every token. The model learns by
//! stepwise EM, and gives every word the states of all layers as features.
//!
//! ```
//! use latens_model::{FeatureRows, Params, TokenEncoder, unwatched};
//! use latens_model_fhmm::{Features, Fhmm, FhmmParams};
//!
//! let corpus = latens_testkit::two_class_corpus(/* n_sentences */ 100, /* seed */ 1);
//! let params = FhmmParams { n_layers: 2, n_states: 3, epochs: 2, ..FhmmParams::default() };
//! let fhmm = Fhmm::fit(&params.validate()?, &corpus, None, &mut unwatched)?;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("toy.fhmm");
//! fhmm.save(&path)?;
//! let fhmm = Fhmm::open(&path)?;
//! let mut rows = FeatureRows::new();
//! fhmm.encoder(Features::Posterior).encode(corpus.sentences.get(0), &mut rows);
//! assert_eq!(rows.row(0).1.len(), 2 * 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod params;
mod shape;
mod tensor;
mod distribution;
mod word_rows;
mod emission;
mod inference;
mod train;
mod fitted;

pub use fitted::encoder::{Features, FhmmEncoder};
pub use fitted::model::Fhmm;
pub use params::{BaseMeasure, FhmmParams, Inference, MStep, Unknown};
pub use train::selection::frequent_sentences;
