//! The one list of all models.

use latens_model::file::{FileError, ModelFile};
use latens_model::{Model, Vectors};
use latens_model_brown::Brown;
use latens_model_fhmm::Fhmm;
use latens_model_hmm::Hmm;
use latens_model_lda::{Glda, Lda};
use latens_model_lds::Lds;
use latens_model_neural::Neural;
use latens_model_ngram::Ngram;
use latens_model_word2vec::Word2vec;
use latens_tasks::tagging::{FeatureTagger, ModelEncoder, WordEncoder};
use serde_json::{Value, json};

/// Reads a model from an open file of its kind.
pub type ReadModel = fn(&ModelFile) -> Result<Box<dyn Model>, FileError>;

/// A kind of model.
#[non_exhaustive]
pub struct ModelKind {
    /// The kind, as the model file names it.
    pub name: &'static str,
    /// Reads a model of the kind from its file.
    pub read: ReadModel,
    /// The default parameters as a JSON object, or `None` if the kind has no parameters.
    pub default_params: fn() -> Option<Value>,
}

/// Every kind of model.
pub const KINDS: &[ModelKind] = &[
    row(Brown::KIND, |file| boxed(Brown::from_file(file)), || Some(json!(Brown::params()))),
    row("ff", |file| boxed(Neural::from_file(file)), || Some(json!(Neural::ff()))),
    row(Fhmm::KIND, |file| boxed(Fhmm::from_file(file)), || Some(json!(Fhmm::params()))),
    row(Glda::KIND, |file| boxed(Glda::from_file(file)), || Some(json!(Glda::params()))),
    row(Hmm::KIND, |file| boxed(Hmm::from_file(file)), || Some(json!(Hmm::params()))),
    row(Lda::KIND, |file| boxed(Lda::from_file(file)), || Some(json!(Lda::params()))),
    row(Lds::KIND, |file| boxed(Lds::from_file(file)), || Some(json!(Lds::params()))),
    row("lstm", |file| boxed(Neural::from_file(file)), || Some(json!(Neural::lstm()))),
    row(Ngram::KIND, |file| boxed(Ngram::from_file(file)), || Some(json!(Ngram::params()))),
    row("rnn", |file| boxed(Neural::from_file(file)), || Some(json!(Neural::rnn()))),
    row(FeatureTagger::KIND, read_tagger, || Some(json!(FeatureTagger::params()))),
    row(Vectors::KIND, |file| boxed(Vectors::from_file(file)), || None),
    row(
        Word2vec::KIND,
        |file| boxed(Word2vec::from_file(file)),
        || Some(json!(Word2vec::params())),
    ),
];

const fn row(
    name: &'static str,
    read: ReadModel,
    default_params: fn() -> Option<Value>,
) -> ModelKind {
    ModelKind { name, read, default_params }
}

fn read_tagger(file: &ModelFile) -> Result<Box<dyn Model>, FileError> {
    boxed(FeatureTagger::from_file(file, &part_encoder))
}

fn boxed<M: Model>(model: Result<M, FileError>) -> Result<Box<dyn Model>, FileError> {
    model.map(|model| Box::new(model) as Box<dyn Model>)
}

/// The model of any kind in an open file, which may be part of another one.
pub(crate) fn open_file(file: &ModelFile) -> Result<Box<dyn Model>, FileError> {
    match KINDS.iter().find(|kind| kind.name == file.kind()) {
        Some(kind) => (kind.read)(file),
        None => {
            let kind = file.kind();
            Err(file.invalid(format!("this version does not know models of kind `{kind}`")))
        }
    }
}

/// The encoder that is stored as part of a tagger's file.
fn part_encoder(file: &ModelFile, features: &str) -> Result<Box<dyn WordEncoder>, FileError> {
    let encoder = ModelEncoder::new("its encoder", open_file(file)?, Some(features))
        .map_err(|error| file.invalid(error))?;
    Ok(Box::new(encoder))
}
