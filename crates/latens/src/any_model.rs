use latens_corpus::Lexicon;
use latens_model::LanguageModel;
use latens_model::file::{FileError, ModelFile};
use latens_model_ngram::Ngram;
use std::path::Path;

/// A model of any kind. Its `match`es have no `_` arm, so that the compiler lists what a new model
/// must say.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnyModel {
    /// An n-gram language model.
    Ngram(Ngram),
}

impl AnyModel {
    /// What the command line and the model file call it.
    pub fn kind(&self) -> &'static str {
        match self {
            AnyModel::Ngram(_) => Ngram::KIND,
        }
    }

    /// What it is, in words, for messages: "an n-gram language model".
    pub fn description(&self) -> &'static str {
        match self {
            AnyModel::Ngram(_) => "an n-gram language model",
        }
    }

    /// How it reads text.
    pub fn lexicon(&self) -> &Lexicon {
        match self {
            AnyModel::Ngram(model) => model.lexicon(),
        }
    }

    /// The model as a language model, if it is one.
    pub fn as_language_model(&self) -> Option<&dyn LanguageModel> {
        match self {
            AnyModel::Ngram(model) => Some(model),
        }
    }

    /// Writes the model to a file.
    pub fn save(&self, path: &Path) -> Result<(), FileError> {
        match self {
            AnyModel::Ngram(model) => model.save(path),
        }
    }
}

/// Opens a model file of any kind.
pub fn open(path: &Path) -> Result<AnyModel, FileError> {
    let file = ModelFile::open(path)?;
    match file.kind() {
        Ngram::KIND => Ngram::from_file(&file).map(AnyModel::Ngram),
        kind => Err(file.invalid(format!("this version knows no models of kind `{kind}`"))),
    }
}
