//! Linear dynamical systems of text (Belanger and Kakade 2015), learned from co-occurrence counts alone.
//!
//! A state vector of a few hundred dimensions moves linearly from word to word, x_{t+1} = A x_t + noise. The word is a
//! linear function of the state, w_t = C x_t + noise, where the noise has full rank over the vocabulary. The initial
//! model comes from the singular vectors of the covariances of words 1 to 7 tokens apart (subspace identification).
//! EM then improves it from the same covariances (ASOS, Martens 2010). A text of any length is read only once, and no
//! matrix of words by words is ever formed.
//!
//! The smoothed state of a token represents the token in the context of its sentence.
//!
//! ```
//! use latens_model::Fit;
//! use latens_model_lds::Lds;
//!
//! let corpus = latens_testkit::two_class_corpus(/* n_sentences */ 300, /* seed */ 1);
//! let lds = Lds::params().dim(4).fit(&corpus)?;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("toy.lds");
//! lds.save(&path)?;
//! let lds = Lds::open(&path)?;
//! let features = lds.embed("a1 b2 a3");
//! assert_eq!((features.n_rows(), features.n_columns()), (3, 8)); // word vector and smoothed state
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod params;
mod cost;
mod fit;
mod model;
mod file;
mod fitted;
mod learn;
mod system;
mod linalg;
mod shards;
#[cfg(test)]
mod tests;

pub use fit::LdsInputs;
pub use fitted::encoder::{Features, LdsEncoder};
pub use fitted::rnn_weights::{HiddenState, RnnWeights};
pub use fitted::singular_pairs::SingularPair;
pub use linalg::error::NumericError;
pub use model::Lds;
pub use params::LdsParams;
pub use shards::LdsShards;
