//! The interface of all fitted models.

use crate::features::GpuEncoder;
use crate::file::{FileError, ModelWriter};
use crate::fit::DeviceError;
use crate::roles::{LanguageModel, Tagger, TokenEncoder, TopicModel};
use crate::words::WordVectors;
use latens_corpus::{Lexicon, WordId};
use serde_json::{Map, Value};
use std::any::Any;
use std::borrow::Cow;
use std::fmt::Debug;
use std::path::Path;

/// A fitted model of any kind.
///
/// Implementations provide the first six methods and override the `as_…` methods of their roles; all other methods
/// have defaults. `latens::open` returns a `Box<dyn Model>`; [`downcast_ref`](#method.downcast_ref) recovers the
/// concrete type.
pub trait Model: Any + Debug + Send + Sync {
    /// The kind of model, as used on the command line and in model files: `ngram`, `hmm`.
    fn kind(&self) -> &'static str;

    /// A noun phrase for use in messages: "an n-gram language model".
    fn description(&self) -> &'static str;

    /// The preprocessing and the vocabulary.
    fn lexicon(&self) -> &Lexicon;

    /// The parameters that the model was fitted with, as a JSON object. It is empty for a model without parameters.
    fn params_json(&self) -> Value;

    /// Facts about the training run, saved with the model.
    fn facts(&self) -> &Map<String, Value>;

    /// Returns the contents of the model file. Arrays are borrowed from the model.
    fn writer(&self) -> ModelWriter<'_>;

    /// Writes the model to a file atomically.
    fn save(&self, path: &Path) -> Result<(), FileError> {
        self.writer().save(path)
    }

    /// The model as a language model, if it is one.
    fn as_language_model(&self) -> Option<&dyn LanguageModel> {
        None
    }

    /// The model as a token encoder with its default features, if it is one.
    fn as_token_encoder(&self) -> Option<&dyn TokenEncoder> {
        None
    }

    /// The model as a topic model, if it is one.
    fn as_topic_model(&self) -> Option<&dyn TopicModel> {
        None
    }

    /// The model as a tagger, if it was trained with tags.
    fn as_tagger(&self) -> Option<Box<dyn Tagger + '_>> {
        None
    }

    /// The word vectors in the order of the word ids, if the model has any.
    fn word_vectors(&self) -> Option<Cow<'_, WordVectors>> {
        None
    }

    /// The kinds of token features that the model offers, the default first. Empty if the model is not an encoder.
    fn feature_kinds(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Returns an encoder for one of [`Model::feature_kinds`], or `None` for any other name.
    fn encoder(&self, kind: &str) -> Option<Box<dyn TokenEncoder + '_>> {
        let _ = kind;
        None
    }

    /// The encoder for one of [`Model::feature_kinds`] on a GPU. `None` if these features are computed on the CPU only; fails
    /// if there is no GPU.
    fn gpu_encoder(&self, kind: &str) -> Option<Result<Box<dyn GpuEncoder + '_>, DeviceError>> {
        let _ = kind;
        None
    }

    /// The id of a preprocessed word for this model's encoders. Some models distinguish
    /// out-of-vocabulary words by spelling.
    fn word_id(&self, word: &str) -> WordId {
        self.lexicon().vocab.id(word)
    }
}

impl dyn Model {
    /// Returns the model as a `T`, or `None` if it has another type.
    pub fn downcast_ref<T: Model>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }

    /// Converts the box into a `Box<T>`, or returns it unchanged if the model has another type.
    pub fn downcast<T: Model>(self: Box<Self>) -> Result<Box<T>, Box<dyn Model>> {
        if (&*self as &dyn Any).is::<T>() {
            let model: Box<dyn Any> = self;
            return Ok(model.downcast().expect("the type was checked"));
        }
        Err(self)
    }

    /// Serializes the model into the bytes of a model file.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.writer().to_bytes()
    }
}
