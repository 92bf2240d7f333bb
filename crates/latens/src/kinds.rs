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

/// Reads a model from an open file of its kind.
pub type ReadModel = fn(&ModelFile) -> Result<Box<dyn Model>, FileError>;

/// Every kind of model, as the model file names it, with the function that reads it.
pub const KINDS: &[(&str, ReadModel)] = &[
    (Brown::KIND, |file| boxed(Brown::from_file(file))),
    ("ff", |file| boxed(Neural::from_file(file))),
    (Fhmm::KIND, |file| boxed(Fhmm::from_file(file))),
    (Glda::KIND, |file| boxed(Glda::from_file(file))),
    (Hmm::KIND, |file| boxed(Hmm::from_file(file))),
    (Lda::KIND, |file| boxed(Lda::from_file(file))),
    (Lds::KIND, |file| boxed(Lds::from_file(file))),
    ("lstm", |file| boxed(Neural::from_file(file))),
    (Ngram::KIND, |file| boxed(Ngram::from_file(file))),
    ("rnn", |file| boxed(Neural::from_file(file))),
    (FeatureTagger::KIND, |file| boxed(FeatureTagger::from_file(file, &part_encoder))),
    (Vectors::KIND, |file| boxed(Vectors::from_file(file))),
    (Word2vec::KIND, |file| boxed(Word2vec::from_file(file))),
];

fn boxed<M: Model>(model: Result<M, FileError>) -> Result<Box<dyn Model>, FileError> {
    model.map(|model| Box::new(model) as Box<dyn Model>)
}

/// The model of any kind in an open file, which may be part of another one.
pub(crate) fn open_file(file: &ModelFile) -> Result<Box<dyn Model>, FileError> {
    match KINDS.iter().find(|(kind, _)| *kind == file.kind()) {
        Some((_, read)) => read(file),
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
