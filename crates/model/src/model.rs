//! Any fitted model.

use crate::file::{FileError, ModelWriter};
use crate::roles::{LanguageModel, Tagger, TokenEncoder, TopicModel};
use crate::words::WordVectors;
use latens_corpus::{Lexicon, WordId};
use serde_json::{Map, Value};
use std::any::Any;
use std::borrow::Cow;
use std::fmt::Debug;
use std::path::Path;

/// A fitted model of any kind: what it is, how it reads text, how it is saved, and which roles it can play.
///
/// A model implements the first five methods and overrides those of its roles; everything else has a default.
/// `latens::open` returns a `Box<dyn Model>`, and [`downcast_ref`](#method.downcast_ref) gets back the concrete type.
pub trait Model: Any + Debug + Send + Sync {
    /// The kind, as the command line and the model file name it: `ngram`, `hmm`.
    fn kind(&self) -> &'static str;

    /// A noun phrase for messages: "an n-gram language model".
    fn description(&self) -> &'static str;

    /// The preprocessing and the vocabulary.
    fn lexicon(&self) -> &Lexicon;

    /// Facts about the training, which are saved with the model.
    fn facts(&self) -> &Map<String, Value>;

    /// The contents of the model file. Arrays are borrowed from the model.
    fn writer(&self) -> ModelWriter<'_>;

    /// Writes the model to a file, completely or not at all.
    fn save(&self, path: &Path) -> Result<(), FileError> {
        self.writer().save(path)
    }

    /// The model as a language model, if it is one.
    fn as_language_model(&self) -> Option<&dyn LanguageModel> {
        None
    }

    /// The model as an encoder of tokens with its default features, if it is one.
    fn as_token_encoder(&self) -> Option<&dyn TokenEncoder> {
        None
    }

    /// The model as a topic model, if it is one.
    fn as_topic_model(&self) -> Option<&dyn TopicModel> {
        None
    }

    /// The model as a tagger, if it has learned tags.
    fn as_tagger(&self) -> Option<Box<dyn Tagger + '_>> {
        None
    }

    /// The vectors of all words, in the order of their ids, if the model has any.
    fn word_vectors(&self) -> Option<Cow<'_, WordVectors>> {
        None
    }

    /// The kinds of token features that the model offers, the default first; empty if it is not an encoder.
    fn feature_kinds(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// An encoder of one of [`Model::feature_kinds`]; `None` for any other name.
    fn encoder(&self, kind: &str) -> Option<Box<dyn TokenEncoder + '_>> {
        let _ = kind;
        None
    }

    /// The id of a preprocessed word as the encoders of this model understand it. Some models
    /// distinguish words that are not in their vocabulary.
    fn word_id(&self, word: &str) -> WordId {
        self.lexicon().vocab.id(word)
    }
}

impl dyn Model {
    /// The model as a value of type `T`, if that is what it is.
    pub fn downcast_ref<T: Model>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }

    /// The model as a value of type `T`; the model itself if it is something else.
    pub fn downcast<T: Model>(self: Box<Self>) -> Result<Box<T>, Box<dyn Model>> {
        if (&*self as &dyn Any).is::<T>() {
            let model: Box<dyn Any> = self;
            return Ok(model.downcast().expect("the type was checked"));
        }
        Err(self)
    }

    /// The bytes of the model file.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.writer().to_bytes()
    }
}
