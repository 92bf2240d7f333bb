use crate::params::ParamError;
use latens_corpus::VocabError;
use latens_store::StorageError;
use std::path::PathBuf;
use thiserror::Error;

/// A model file or a checkpoint could not be written, opened or used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The system refused.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// It is a file of another kind.
    #[error("`{}` is not a latens model: {found}", path.display())]
    NotLatens {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        found: &'static str,
    },
    /// The end is missing, as after a download that was broken off.
    #[error("`{}` is cut short: it has {found} of {expected} bytes", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// How long its header says it is.
        expected: u64,
        /// How long it is.
        found: u64,
    },
    /// Some bytes are not those that were written.
    #[error("`{}` is damaged: {problem}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What does not match.
        problem: &'static str,
    },
    /// It was written by a later version of the program.
    #[error(
        "`{}` has format {found} of latens {written_by}, but this is latens {}, which knows \
         formats up to {known}: upgrade latens to open it",
        path.display(), env!("CARGO_PKG_VERSION")
    )]
    NewerVersion {
        /// The file.
        path: PathBuf,
        /// The version of its format.
        found: u32,
        /// The newest version that this program reads.
        known: u32,
        /// The version of the program that wrote it.
        written_by: String,
    },
    /// It is a model, but not of the kind that is needed.
    #[error("`{}` is of kind `{found}`, but `{needed}` is needed", path.display())]
    WrongKind {
        /// The file.
        path: PathBuf,
        /// The kind that is needed.
        needed: String,
        /// The kind that it is.
        found: String,
    },
    /// The header is not what a header must be.
    #[error("the header of `{}` cannot be read", path.display())]
    BadHeader {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: serde_json::Error,
    },
    /// The parameters in the header are not those of this model.
    #[error("the parameters in `{}` are not valid", path.display())]
    Params {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: ParamError,
    },
    /// The vocabulary contradicts itself.
    #[error("the vocabulary in `{}` is not valid", path.display())]
    Vocab {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: VocabError,
    },
    /// An array that the model needs is not there.
    #[error("`{}` has no array `{name}`", path.display())]
    MissingArray {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
    },
    /// An array has another type or shape than the model needs.
    #[error("the array `{name}` in `{}` is {found}, but {needed} is needed", path.display())]
    WrongArray {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
        /// The type and shape that are needed.
        needed: String,
        /// The type and shape that it has.
        found: String,
    },
    /// An array has infinite values or NaN.
    #[error("the array `{name}` in `{}` has values that are not finite", path.display())]
    NotFinite {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
    },
    /// The parts do not make a model; see [`ModelFile::invalid`](super::ModelFile::invalid).
    #[error("`{}` is not a valid model: {problem}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}
