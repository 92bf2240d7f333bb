use latens_corpus::Lexicon;
use latens_model::file::{FileError, ModelFile};
use latens_model::{LanguageModel, TokenEncoder};
use latens_model_brown::Brown;
use latens_model_hmm::Hmm;
use latens_model_ngram::Ngram;
use std::path::Path;

/// A model of any kind. Its `match`es have no `_` arm, so that the compiler lists what a new model
/// must say.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnyModel {
    /// A Brown clustering.
    Brown(Brown),
    /// A hidden Markov model.
    Hmm(Box<Hmm>),
    /// An n-gram language model.
    Ngram(Ngram),
}

impl AnyModel {
    /// What the command line and the model file call it.
    pub fn kind(&self) -> &'static str {
        match self {
            AnyModel::Brown(_) => Brown::KIND,
            AnyModel::Hmm(_) => Hmm::KIND,
            AnyModel::Ngram(_) => Ngram::KIND,
        }
    }

    /// What it is, in words, for messages: "an n-gram language model".
    pub fn description(&self) -> &'static str {
        match self {
            AnyModel::Brown(_) => "a Brown clustering",
            AnyModel::Hmm(_) => "a hidden Markov model",
            AnyModel::Ngram(_) => "an n-gram language model",
        }
    }

    /// How it reads text.
    pub fn lexicon(&self) -> &Lexicon {
        match self {
            AnyModel::Brown(model) => model.lexicon(),
            AnyModel::Hmm(model) => model.lexicon(),
            AnyModel::Ngram(model) => model.lexicon(),
        }
    }

    /// The model as a language model, if it is one.
    pub fn as_language_model(&self) -> Option<&dyn LanguageModel> {
        match self {
            AnyModel::Hmm(model) => Some(&**model),
            AnyModel::Ngram(model) => Some(model),
            AnyModel::Brown(_) => None,
        }
    }

    /// The model as an encoder of tokens, if it is one.
    pub fn as_token_encoder(&self) -> Option<&dyn TokenEncoder> {
        match self {
            AnyModel::Brown(model) => Some(model),
            AnyModel::Hmm(model) => Some(&**model),
            AnyModel::Ngram(_) => None,
        }
    }

    /// Writes the model to a file.
    pub fn save(&self, path: &Path) -> Result<(), FileError> {
        match self {
            AnyModel::Brown(model) => model.save(path),
            AnyModel::Hmm(model) => model.save(path),
            AnyModel::Ngram(model) => model.save(path),
        }
    }
}

/// Opens a model file of any kind.
pub fn open(path: &Path) -> Result<AnyModel, FileError> {
    let file = ModelFile::open(path)?;
    match file.kind() {
        Brown::KIND => Brown::from_file(&file).map(AnyModel::Brown),
        Hmm::KIND => Hmm::from_file(&file).map(|model| AnyModel::Hmm(Box::new(model))),
        Ngram::KIND => Ngram::from_file(&file).map(AnyModel::Ngram),
        kind => Err(file.invalid(format!("this version knows no models of kind `{kind}`"))),
    }
}
