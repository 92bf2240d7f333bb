use crate::params::ParamError;
use latens_corpus::VocabError;
use latens_store::StorageError;
use std::path::PathBuf;
use thiserror::Error;

/// A model file or checkpoint could not be written, opened or used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// Reading or writing the file failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The file is not a latens model.
    #[error("`{}` is not a latens model: {found}", path.display())]
    NotLatens {
        /// The file.
        path: PathBuf,
        /// What the file appears to be instead.
        found: &'static str,
    },
    /// The end is missing, for example after an interrupted download.
    #[error("`{}` is truncated: it has {found} of {expected} bytes", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Expected size in bytes.
        expected: u64,
        /// Actual size in bytes.
        found: u64,
    },
    /// The contents do not match the checksums.
    #[error("`{}` is damaged: {problem}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The mismatch.
        problem: &'static str,
    },
    /// The file has a newer format than this version can read.
    #[error(
        "`{}` has format {found} of latens {written_by}, but this is latens {}, which supports \
         formats up to {known}: upgrade latens to open it",
        path.display(), env!("CARGO_PKG_VERSION")
    )]
    NewerVersion {
        /// The file.
        path: PathBuf,
        /// Format version of the file.
        found: u32,
        /// Newest supported format version.
        known: u32,
        /// Version of latens that wrote the file.
        written_by: String,
    },
    /// The model is of another kind.
    #[error("`{}` is of kind `{found}`, expected `{needed}`", path.display())]
    WrongKind {
        /// The file.
        path: PathBuf,
        /// The expected kind.
        needed: String,
        /// The actual kind.
        found: String,
    },
    /// The header is malformed.
    #[error("the header of `{}` cannot be read", path.display())]
    BadHeader {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: serde_json::Error,
    },
    /// The parameters in the header are invalid.
    #[error("the parameters in `{}` are not valid", path.display())]
    Params {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: ParamError,
    },
    /// The vocabulary is inconsistent.
    #[error("the vocabulary in `{}` is not valid", path.display())]
    Vocab {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: VocabError,
    },
    /// A required array is missing.
    #[error("`{}` has no array `{name}`", path.display())]
    MissingArray {
        /// The file.
        path: PathBuf,
        /// Name of the array.
        name: String,
    },
    /// An array has an unexpected type or shape.
    #[error("the array `{name}` in `{}` is {found}, expected {needed}", path.display())]
    WrongArray {
        /// The file.
        path: PathBuf,
        /// Name of the array.
        name: String,
        /// The expected type and shape.
        needed: String,
        /// The actual type and shape.
        found: String,
    },
    /// An array contains infinite or NaN values.
    #[error("the array `{name}` in `{}` contains infinite or NaN values", path.display())]
    NotFinite {
        /// The file.
        path: PathBuf,
        /// Name of the array.
        name: String,
    },
    /// The contents are inconsistent; see [`ModelFile::invalid`](super::ModelFile::invalid).
    #[error("`{}` is not a valid model: {problem}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
}
