//! Traits and types shared by all models: roles, validated parameters, training progress and
//! checkpoints, and the model file.
//!
//! A model defines its parameters, is estimated from data, and is saved as named arrays:
//!
//! ```
//! use latens_corpus::{Lexicon, Preprocessing, Vocab, VocabLimits};
//! use latens_model::{ModelFile, ModelWriter, ParamError, Params, check_range};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct UnigramParams {
//!     /// Pseudo-count added to every word count.
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
//! // Estimate.
//! let params = UnigramParams { smoothing: 1.0 }.validate()?;
//! let limits = VocabLimits::default();
//! let vocab = Vocab::from_counts([("the", 3), ("whale", 1), ("<eos>", 2)], &limits);
//! let total = vocab.counts().iter().sum::<u64>() as f64 + params.smoothing * vocab.len() as f64;
//! let prob = |&count: &u64| (count as f64 + params.smoothing) / total;
//! let probs: Vec<f64> = vocab.counts().iter().map(prob).collect();
//! let lexicon = Lexicon::new(Preprocessing::default(), limits, vocab);
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
//! // Open: the checksums are verified, and the array is memory-mapped.
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
//! Parameters implement [`Fit`], which fits the model: `Hmm::params().n_states(64).fit(&corpus)`.

mod params;
mod sampling;
mod tagging;
mod scorers;
mod roles;
mod features;
mod model;
pub mod file;
mod fit;
pub mod group;
pub mod shards;
mod words;
mod vector_model;
pub mod compat;

pub use features::{FeatureRows, GpuEncoder};
pub use file::{Element, ElementType, FileError, Inspection, ModelFile, ModelWriter, inspect};
pub use fit::{
    AvailableMemory, Bytes, Checkpoint, CheckpointError, CheckpointPace, Cost, CostPart, Device,
    DeviceError, EpochResult, Epochs, Fit, FitBuilder, FitError, Learner, MakeCheckpoint,
    MemoryLimit, Outcome, Progress, Session, Setup, SharedRows, Trainer, TrainingState, Watch,
    data_fingerprint, fingerprint, resident_memory, unwatched,
};
pub use latens_math::Matrix;
pub use model::Model;
pub use params::{Number, ParamError, Params, Valid, check_range, check_that};
pub use roles::{GpuTagger, LanguageModel, TagError, Tagger, TokenEncoder, TopicModel};
pub use sampling::{SampleSize, WatchSample};
pub use scorers::{BatchScorer, Scorer, StreamStep};
pub use tagging::{TagInput, TagOutputs, Tagged};
pub use vector_model::Vectors;
pub use words::{ClustersError, Coverage, NoVectors, WordClusters, WordVectors};
