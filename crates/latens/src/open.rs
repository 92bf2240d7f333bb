//! Opening model files.

use crate::kinds::open_file;
use latens_model::Model;
use latens_model::file::{FileError, ModelFile};
use latens_store::{FlatArray, StorageError, map_file};
use latens_tasks::tagging::{Encoder, EncoderError};
use std::path::Path;
use thiserror::Error;

/// Opens a model file of any kind.
///
/// ```no_run
/// let model = latens::open("news.hmm")?;
/// println!("`news.hmm` is {}", model.description());
/// if let Some(hmm) = model.downcast_ref::<latens::hmm::Hmm>() {
///     println!("it has {} states", hmm.n_states());
/// }
/// # Ok::<(), latens::model::FileError>(())
/// ```
pub fn open(path: impl AsRef<Path>) -> Result<Box<dyn Model>, FileError> {
    open_file(&ModelFile::open(path)?)
}

/// Opens a model of any kind from the bytes of its file; the counterpart of `to_bytes` of a [`Model`].
pub fn from_bytes(bytes: &[u8]) -> Result<Box<dyn Model>, FileError> {
    open_file(&ModelFile::from_bytes(bytes)?)
}

/// Why a file cannot be opened as an encoder.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenEncoderError {
    /// The model file cannot be opened.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The model does not have the requested features.
    #[error(transparent)]
    Encoder(#[from] EncoderError),
}

/// Opens a model as an encoder with one of its [`Model::feature_kinds`], or with the default one.
///
/// [`Encoder::from_model`] does the same for a model in memory.
pub fn open_encoder(
    path: impl AsRef<Path>,
    features: Option<&str>,
) -> Result<Encoder, OpenEncoderError> {
    let path = path.as_ref();
    let model = open(path)?;
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let map = map_file(path)?;
    let n_bytes = map.len();
    let file = FlatArray::mapped(map, 0..n_bytes).expect("bytes need no alignment");
    Ok(Encoder::from_model_and_file(name, model, features, file)?)
}
