//! What every model shares: the roles it can play, parameters that are checked, progress that can
//! be watched and interrupted, and the file it is saved to.
//!
//! A model defines its parameters, learns something from data, and saves itself as named arrays:
//!
//! ```
//! use latens_corpus::{Lexicon, Preprocessing, Vocab, VocabLimits};
//! use latens_model::{ModelFile, ModelWriter, ParamError, Params, check_range};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct UnigramParams {
//!     /// What is added to every count.
//!     smoothing: f64,
//! }
//!
//! impl Default for UnigramParams {
//!     fn default() -> Self {
//!         UnigramParams { smoothing: 0.5 }
//!     }
//! }
//!
//! impl Params for UnigramParams {
//!     fn check(&self) -> Result<(), ParamError> {
//!         check_range("smoothing", self.smoothing, 0.0..)
//!     }
//! }
//!
//! // Learn.
//! let params = UnigramParams { smoothing: 1.0 }.validate()?;
//! let limits = VocabLimits::default();
//! let vocab = Vocab::from_counts([("the", 3), ("whale", 1), ("<eos>", 2)], &limits);
//! let total = vocab.counts().iter().sum::<u64>() as f64 + params.smoothing * vocab.len() as f64;
//! let prob = |&count: &u64| (count as f64 + params.smoothing) / total;
//! let probs: Vec<f64> = vocab.counts().iter().map(prob).collect();
//! let lexicon = Lexicon { preprocessing: Preprocessing::default(), limits, vocab };
//!
//! // Save.
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("melville.unigram");
//! ModelWriter::new("unigram", &params)
//!     .lexicon(&lexicon)
//!     .fact("tokens", 6)
//!     .array("probs", &[lexicon.vocab.len()], &probs)
//!     .save(&path)?;
//!
//! // Open: every byte is verified, and the array is used where it lies in the file.
//! let file = ModelFile::open(&path)?;
//! file.expect_kind("unigram")?;
//! let params = file.parameters::<UnigramParams>()?;
//! let vocab = file.lexicon()?.vocab;
//! let probs = file.finite_array::<f64>("probs", &[vocab.len()])?;
//! assert_eq!(params.smoothing, 1.0);
//! assert_eq!(probs[vocab.id("whale").index()], 0.2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A model is fitted from its parameters, which implement [`Fit`]: `X::params().n_things(3).fit(&data)`.

mod params;
mod roles;
mod features;
mod model;
pub mod file;
mod fit;
mod words;
pub mod compat;

pub use features::FeatureRows;
pub use file::{Element, ElementType, FileError, Inspection, ModelFile, ModelWriter, inspect};
pub use fit::{
    Checkpoint, CheckpointError, CheckpointPace, Device, EpochResult, Epochs, Fit, FitBuilder,
    FitError, Learner, MakeCheckpoint, Outcome, Progress, Session, SharedRows, Trainer,
    TrainingState, Watch, data_fingerprint, fingerprint, unwatched,
};
pub use latens_math::Matrix;
pub use model::Model;
pub use params::{Number, ParamError, Params, Valid, check_range, check_that};
pub use roles::{LanguageModel, Scorer, TagError, Tagger, TokenEncoder, TopicModel};
pub use words::{ClustersError, Coverage, NoVectors, Vectors, WordClusters, WordVectors};
