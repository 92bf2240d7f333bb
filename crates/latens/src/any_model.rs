use crate::encoder::encoder_of;
use latens_corpus::{Lexicon, WordId};
use latens_model::file::{FileError, ModelFile};
use latens_model::{LanguageModel, Tagger, TokenEncoder, TopicModel, Vectors, WordVectors};
use latens_model_brown::Brown;
use latens_model_fhmm::{self as fhmm, Fhmm};
use latens_model_hmm::{Features, Hmm};
use latens_model_lda::{Glda, Lda};
use latens_model_lds::{self as lds, Lds};
use latens_model_neural::{Architecture, Neural};
use latens_model_ngram::Ngram;
use latens_model_word2vec::Word2vec;
use latens_tasks::tagging::FeatureTagger;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::path::Path;

/// A model of any kind. Its `match`es have no `_` arm, so that the compiler lists what a new model
/// must say.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnyModel {
    /// A Brown clustering.
    Brown(Brown),
    /// A factorial hidden Markov model.
    Fhmm(Box<Fhmm>),
    /// A hidden Markov model.
    Hmm(Box<Hmm>),
    /// Topics that are Gaussians over word vectors.
    Glda(Box<Glda>),
    /// Topics that are distributions over words.
    Lda(Box<Lda>),
    /// A linear dynamical system.
    Lds(Box<Lds>),
    /// A neural language model.
    Neural(Box<Neural>),
    /// An n-gram language model.
    Ngram(Ngram),
    /// Word vectors that another program made.
    Vectors(Vectors),
    /// Word vectors learned by word2vec.
    Word2vec(Word2vec),
    /// A tagger over features.
    Tagger(Box<FeatureTagger>),
}

impl AnyModel {
    /// What the command line and the model file call it.
    pub fn kind(&self) -> &'static str {
        match self {
            AnyModel::Brown(_) => Brown::KIND,
            AnyModel::Fhmm(_) => Fhmm::KIND,
            AnyModel::Hmm(_) => Hmm::KIND,
            AnyModel::Glda(_) => Glda::KIND,
            AnyModel::Lda(_) => Lda::KIND,
            AnyModel::Lds(_) => Lds::KIND,
            AnyModel::Neural(model) => latens_model::Model::kind(&**model),
            AnyModel::Ngram(_) => Ngram::KIND,
            AnyModel::Vectors(_) => Vectors::KIND,
            AnyModel::Word2vec(_) => Word2vec::KIND,
            AnyModel::Tagger(_) => FeatureTagger::KIND,
        }
    }

    /// What it is, in words, for messages: "an n-gram language model".
    pub fn description(&self) -> &'static str {
        match self {
            AnyModel::Brown(_) => "a Brown clustering",
            AnyModel::Fhmm(_) => "a factorial hidden Markov model",
            AnyModel::Hmm(_) => "a hidden Markov model",
            AnyModel::Glda(_) => "a Gaussian topic model",
            AnyModel::Lda(_) => "a topic model",
            AnyModel::Lds(_) => "a linear dynamical system",
            AnyModel::Neural(model) => match model.fitted_with().architecture {
                Architecture::Ff => "a feed-forward language model",
                Architecture::Rnn => "a recurrent language model",
                Architecture::Lstm => "an LSTM language model",
            },
            AnyModel::Ngram(_) => "an n-gram language model",
            AnyModel::Vectors(_) => "a list of word vectors",
            AnyModel::Word2vec(_) => "a word2vec model",
            AnyModel::Tagger(_) => "a tagger",
        }
    }

    /// How it reads text.
    pub fn lexicon(&self) -> &Lexicon {
        match self {
            AnyModel::Brown(model) => model.lexicon(),
            AnyModel::Fhmm(model) => model.lexicon(),
            AnyModel::Hmm(model) => model.lexicon(),
            AnyModel::Glda(model) => model.lexicon(),
            AnyModel::Lda(model) => model.lexicon(),
            AnyModel::Lds(model) => model.lexicon(),
            AnyModel::Neural(model) => model.lexicon(),
            AnyModel::Ngram(model) => model.lexicon(),
            AnyModel::Vectors(model) => model.lexicon(),
            AnyModel::Word2vec(model) => model.lexicon(),
            AnyModel::Tagger(model) => model.lexicon(),
        }
    }

    /// The id of a word as its encoders understand it, the word being preprocessed: some models tell words apart that
    /// are not in their vocabulary.
    pub fn word_id(&self, word: &str) -> WordId {
        match self {
            AnyModel::Fhmm(model) => model.word_id(word),
            AnyModel::Brown(_)
            | AnyModel::Glda(_)
            | AnyModel::Hmm(_)
            | AnyModel::Lda(_)
            | AnyModel::Lds(_)
            | AnyModel::Neural(_)
            | AnyModel::Ngram(_)
            | AnyModel::Vectors(_)
            | AnyModel::Word2vec(_)
            | AnyModel::Tagger(_) => self.lexicon().vocab.id(word),
        }
    }

    /// Facts about its training.
    pub fn facts(&self) -> &Map<String, Value> {
        match self {
            AnyModel::Brown(model) => model.facts(),
            AnyModel::Fhmm(model) => model.facts(),
            AnyModel::Hmm(model) => model.facts(),
            AnyModel::Glda(model) => model.facts(),
            AnyModel::Lda(model) => model.facts(),
            AnyModel::Lds(model) => model.facts(),
            AnyModel::Neural(model) => model.facts(),
            AnyModel::Ngram(model) => model.facts(),
            AnyModel::Vectors(model) => model.facts(),
            AnyModel::Word2vec(model) => model.facts(),
            AnyModel::Tagger(model) => model.facts(),
        }
    }

    /// The model as a language model, if it is one.
    pub fn as_language_model(&self) -> Option<&dyn LanguageModel> {
        match self {
            AnyModel::Hmm(model) => Some(&**model),
            AnyModel::Neural(model) => Some(&**model),
            AnyModel::Ngram(model) => Some(model),
            AnyModel::Brown(_)
            | AnyModel::Fhmm(_)
            | AnyModel::Glda(_)
            | AnyModel::Lda(_)
            | AnyModel::Lds(_)
            | AnyModel::Vectors(_)
            | AnyModel::Word2vec(_)
            | AnyModel::Tagger(_) => None,
        }
    }

    /// The model as a topic model, if it is one.
    pub fn as_topic_model(&self) -> Option<&dyn TopicModel> {
        match self {
            AnyModel::Glda(model) => Some(&**model),
            AnyModel::Lda(model) => Some(&**model),
            AnyModel::Brown(_)
            | AnyModel::Fhmm(_)
            | AnyModel::Hmm(_)
            | AnyModel::Lds(_)
            | AnyModel::Neural(_)
            | AnyModel::Ngram(_)
            | AnyModel::Vectors(_)
            | AnyModel::Word2vec(_)
            | AnyModel::Tagger(_) => None,
        }
    }

    /// The model as an encoder of tokens, if it is one.
    pub fn as_token_encoder(&self) -> Option<&dyn TokenEncoder> {
        match self {
            AnyModel::Brown(model) => Some(model),
            AnyModel::Fhmm(model) => Some(&**model),
            AnyModel::Hmm(model) => Some(&**model),
            AnyModel::Lds(model) => Some(&**model),
            AnyModel::Vectors(model) => Some(model.vectors()),
            AnyModel::Word2vec(model) => Some(model),
            AnyModel::Glda(_)
            | AnyModel::Lda(_)
            | AnyModel::Neural(_)
            | AnyModel::Ngram(_)
            | AnyModel::Tagger(_) => None,
        }
    }

    /// The model as a tagger, if it learned tags.
    pub fn as_tagger(&self) -> Option<Box<dyn Tagger + '_>> {
        match self {
            AnyModel::Hmm(model) => Some(Box::new(model.tagger()?)),
            AnyModel::Tagger(model) => Some(Box::new(&**model)),
            AnyModel::Brown(_)
            | AnyModel::Fhmm(_)
            | AnyModel::Glda(_)
            | AnyModel::Lda(_)
            | AnyModel::Lds(_)
            | AnyModel::Neural(_)
            | AnyModel::Ngram(_)
            | AnyModel::Vectors(_)
            | AnyModel::Word2vec(_) => None,
        }
    }

    /// The vectors of its words, in the order of their ids, if it has any.
    pub fn word_vectors(&self) -> Option<Cow<'_, WordVectors>> {
        match self {
            AnyModel::Lds(model) => {
                WordVectors::new(model.dim(), model.type_vectors()).ok().map(Cow::Owned)
            }
            AnyModel::Glda(model) => Some(Cow::Borrowed(model.vectors())),
            AnyModel::Vectors(model) => Some(Cow::Borrowed(model.vectors())),
            AnyModel::Word2vec(model) => Some(Cow::Borrowed(model.vectors())),
            AnyModel::Brown(_)
            | AnyModel::Fhmm(_)
            | AnyModel::Hmm(_)
            | AnyModel::Lda(_)
            | AnyModel::Neural(_)
            | AnyModel::Ngram(_)
            | AnyModel::Tagger(_) => None,
        }
    }

    /// The kinds of features that it has of words, the usual one first; none if it is no encoder.
    pub fn feature_kinds(&self) -> Vec<&'static str> {
        match self {
            AnyModel::Brown(_) => vec![BROWN_FEATURES],
            AnyModel::Fhmm(_) => fhmm::Features::ALL.map(|(kind, _)| kind).to_vec(),
            AnyModel::Hmm(_) => Features::ALL.map(|(kind, _)| kind).to_vec(),
            AnyModel::Lds(_) => lds::Features::ALL.map(|(kind, _)| kind).to_vec(),
            AnyModel::Vectors(_) | AnyModel::Word2vec(_) => vec![VECTOR_FEATURES],
            AnyModel::Glda(_)
            | AnyModel::Lda(_)
            | AnyModel::Neural(_)
            | AnyModel::Ngram(_)
            | AnyModel::Tagger(_) => vec![],
        }
    }

    /// The model as an encoder of one of its [`AnyModel::feature_kinds`].
    pub fn encoder(&self, kind: &str) -> Option<Box<dyn TokenEncoder + '_>> {
        match self {
            AnyModel::Brown(model) if kind == BROWN_FEATURES => Some(Box::new(model)),
            AnyModel::Fhmm(model) => {
                let (_, features) = *fhmm::Features::ALL.iter().find(|(name, _)| *name == kind)?;
                Some(Box::new(model.encoder(features)))
            }
            AnyModel::Hmm(model) => {
                let (_, features) = *Features::ALL.iter().find(|(name, _)| *name == kind)?;
                Some(Box::new(model.encoder(features)))
            }
            AnyModel::Lds(model) => {
                let (_, features) = *lds::Features::ALL.iter().find(|(name, _)| *name == kind)?;
                Some(Box::new(model.encoder(features)))
            }
            AnyModel::Vectors(model) if kind == VECTOR_FEATURES => Some(Box::new(model.vectors())),
            AnyModel::Word2vec(model) if kind == VECTOR_FEATURES => Some(Box::new(model)),
            AnyModel::Brown(_)
            | AnyModel::Neural(_)
            | AnyModel::Glda(_)
            | AnyModel::Lda(_)
            | AnyModel::Ngram(_)
            | AnyModel::Vectors(_)
            | AnyModel::Word2vec(_)
            | AnyModel::Tagger(_) => None,
        }
    }

    /// Writes the model to a file.
    pub fn save(&self, path: &Path) -> Result<(), FileError> {
        match self {
            AnyModel::Brown(model) => model.save(path),
            AnyModel::Fhmm(model) => model.save(path),
            AnyModel::Hmm(model) => model.save(path),
            AnyModel::Glda(model) => model.save(path),
            AnyModel::Lda(model) => model.save(path),
            AnyModel::Lds(model) => model.save(path),
            AnyModel::Neural(model) => model.save(path),
            AnyModel::Ngram(model) => model.save(path),
            AnyModel::Vectors(model) => model.save(path),
            AnyModel::Word2vec(model) => model.save(path),
            AnyModel::Tagger(model) => model.save(path),
        }
    }
}

/// The features of Brown clusters: beginnings of their paths.
const BROWN_FEATURES: &str = "paths";
/// The features of word vectors: their numbers.
const VECTOR_FEATURES: &str = "vectors";

/// Opens a model file of any kind.
pub fn open(path: &Path) -> Result<AnyModel, FileError> {
    open_file(&ModelFile::open(path)?)
}

/// The model of any kind in an open file, which may be part of another one.
pub(crate) fn open_file(file: &ModelFile) -> Result<AnyModel, FileError> {
    match file.kind() {
        Brown::KIND => Brown::from_file(file).map(AnyModel::Brown),
        Fhmm::KIND => Fhmm::from_file(file).map(|model| AnyModel::Fhmm(Box::new(model))),
        Hmm::KIND => Hmm::from_file(file).map(|model| AnyModel::Hmm(Box::new(model))),
        Glda::KIND => Glda::from_file(file).map(|model| AnyModel::Glda(Box::new(model))),
        Lda::KIND => Lda::from_file(file).map(|model| AnyModel::Lda(Box::new(model))),
        Lds::KIND => Lds::from_file(file).map(|model| AnyModel::Lds(Box::new(model))),
        kind if Neural::KINDS.contains(&kind) => {
            Neural::from_file(file).map(|model| AnyModel::Neural(Box::new(model)))
        }
        Ngram::KIND => Ngram::from_file(file).map(AnyModel::Ngram),
        FeatureTagger::KIND => FeatureTagger::from_file(file, &encoder_of)
            .map(|model| AnyModel::Tagger(Box::new(model))),
        Vectors::KIND => Vectors::from_file(file).map(AnyModel::Vectors),
        Word2vec::KIND => Word2vec::from_file(file).map(AnyModel::Word2vec),
        kind => Err(file.invalid(format!("this version knows no models of kind `{kind}`"))),
    }
}
