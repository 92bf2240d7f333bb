//! Opening model files.

use crate::encoder::{EncoderError, named_encoder};
use crate::kinds::open_file;
use latens_model::Model;
use latens_model::file::{FileError, ModelFile};
use latens_store::{FlatArray, map_file};
use latens_tasks::tagging::Encoder;
use std::path::Path;

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

/// Opens a model as an encoder of one of its [`Model::feature_kinds`], or of the first one.
pub fn open_encoder(
    path: impl AsRef<Path>,
    features: Option<&str>,
) -> Result<Encoder, EncoderError> {
    let path = path.as_ref();
    let model = open(path)?;
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let map = map_file(path)?;
    let n_bytes = map.len();
    let file = FlatArray::mapped(map, 0..n_bytes).expect("bytes need no alignment");
    named_encoder(name, model, features, |_| file)
}
