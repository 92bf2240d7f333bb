//! An encoder as a part of a tagger.

use super::model_encoder::{EncoderError, ModelEncoder};
use super::word_encoder::WordEncoder;
use latens_model::Model;
use latens_store::FlatArray;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An encoder together with its model file, which is stored in the file of the tagger.
///
/// ```
/// use latens_corpus::{Lexicon, Preprocessing, Vocab, VocabLimits};
/// use latens_model::{Vectors, WordVectors};
/// use latens_tasks::tagging::Encoder;
///
/// let vocab = Vocab::from_parts(["<unk>", "<eos>", "cat", "dog"], vec![0; 4])?;
/// let preprocessing = Preprocessing::default();
/// let lexicon = Lexicon::new(preprocessing, VocabLimits::default(), vocab);
/// let vectors = WordVectors::new(2, vec![0.0, 0.0, 0.0, 0.0, 0.9, 0.1, 0.8, 0.2])?;
///
/// let encoder = Encoder::from_model(Vectors::new(lexicon, vectors), None)?;
/// assert_eq!((&*encoder.features, encoder.model.n_features()), ("vectors", 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Encoder {
    /// Name for messages, usually the name of the file.
    pub name: String,
    /// Kind of features, e.g., `paths` or `posterior`.
    pub features: String,
    /// The model.
    pub model: Box<dyn WordEncoder>,
    /// Contents of the model file.
    pub file: FlatArray<u8>,
}

impl Encoder {
    /// An encoder over a model in memory, with the given kind of features or the default one of the model.
    pub fn from_model(model: impl Model, features: Option<&str>) -> Result<Encoder, EncoderError> {
        Encoder::from_boxed_model(Box::new(model), features)
    }

    /// [`Encoder::from_model`] for a model whose type is not known.
    pub fn from_boxed_model(
        model: Box<dyn Model>,
        features: Option<&str>,
    ) -> Result<Encoder, EncoderError> {
        let (name, file) = (model.kind().to_owned(), model.to_bytes());
        Encoder::from_model_and_file(name, model, features, file.into())
    }

    /// An encoder over a model that was opened from a file. `file` has the contents of that file.
    pub fn from_model_and_file(
        name: String,
        model: Box<dyn Model>,
        features: Option<&str>,
        file: FlatArray<u8>,
    ) -> Result<Encoder, EncoderError> {
        let model = ModelEncoder::new(&name, model, features)?;
        Ok(Encoder { name, features: model.kind().to_owned(), model: Box::new(model), file })
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Encoder");
        debug.field("name", &self.name).field("features", &self.features).finish_non_exhaustive()
    }
}

/// Facts about an encoder that a tagger needs, saved with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct EncoderInfo {
    pub(crate) name: String,
    pub(crate) features: String,
    pub(crate) n_features: usize,
    pub(crate) n_bytes: usize,
    /// Whether every row has a value in every column. Dense rows are standardized.
    pub(crate) is_dense: bool,
    pub(crate) scale: f64,
    /// Fraction of the tokens of the training text that the encoder knows.
    pub(crate) known: f64,
}

/// Replaces each x by (x − mean) · scale.
pub(crate) fn standardize(row: &mut [f32], means: &[f32], scale: f64) {
    row.iter_mut().zip(means).for_each(|(x, mean)| *x = (*x - mean) * scale as f32);
}
