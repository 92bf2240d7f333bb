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
//! use latens_model::{FeatureRows, Params, TokenEncoder, unwatched};
//! use latens_model_lds::{Lds, LdsParams, Training};
//!
//! let corpus = latens_testkit::two_class_corpus(/* n_sentences */ 300, /* seed */ 1);
//! let params = LdsParams { dim: 4, ..LdsParams::default() }.validate()?;
//! let training = Training::of(&params, &corpus, None, &mut unwatched)?;
//! let lds = Lds::fit(&params, training, &mut unwatched)?;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("toy.lds");
//! lds.save(&path)?;
//! let lds = Lds::open(&path)?;
//! let mut rows = FeatureRows::new();
//! lds.encode(corpus.sentences.get(0), &mut rows);
//! assert_eq!(rows.row(0).1.len(), 8); // the word vector and the smoothed state
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod params;
mod fit;
mod model;
mod file;
mod fitted;
mod learn;
mod system;
mod linalg;
#[cfg(test)]
mod tests;

pub use fit::Training;
pub use fitted::encoder::{Features, LdsEncoder};
pub use fitted::rnn_weights::{HiddenState, RnnWeights};
pub use fitted::singular_pairs::SingularPair;
pub use linalg::error::NumericError;
pub use model::Lds;
pub use params::LdsParams;
