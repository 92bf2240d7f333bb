//! Any model that offers token features, as an encoder for a tagger.

use latens_corpus::WordId;
use latens_model::file::{FileError, ModelFile};
use latens_model::{FeatureRows, Model};
use latens_store::{FlatArray, StorageError};
use latens_tasks::tagging::{Encoder, WordEncoder};
use thiserror::Error;

/// Why a model cannot be used as the requested encoder.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EncoderError {
    /// The model file cannot be opened.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The model has no token features.
    #[error("`{name}` is {description}, which has no token features")]
    NoEncoder {
        /// The file, or the kind of a model in memory.
        name: String,
        /// What the model is.
        description: &'static str,
    },
    /// The model has other features.
    #[error("`{name}` is {description}, which has no features `{wanted}`, but {}", quoted(kinds))]
    NoFeatures {
        /// The file, or the kind of a model in memory.
        name: String,
        /// What the model is.
        description: &'static str,
        /// The requested features.
        wanted: String,
        /// The features that the model has.
        kinds: Vec<&'static str>,
    },
}

fn quoted(kinds: &[&str]) -> String {
    kinds.iter().map(|kind| format!("`{kind}`")).collect::<Vec<_>>().join(", ")
}

/// Turns a model in memory into an encoder of one of its [`Model::feature_kinds`], or of the first one.
///
/// A tagger's file holds the files of its encoders, so the model is written to memory once.
pub fn encoder(model: Box<dyn Model>, features: Option<&str>) -> Result<Encoder, EncoderError> {
    named_encoder(model.kind().to_owned(), model, features, |model| model.to_bytes().into())
}

/// An encoder with this name; `file` gives the bytes of the model file.
pub(crate) fn named_encoder(
    name: String,
    model: Box<dyn Model>,
    features: Option<&str>,
    file: impl FnOnce(&dyn Model) -> FlatArray<u8>,
) -> Result<Encoder, EncoderError> {
    let (kinds, description) = (model.feature_kinds(), model.description());
    let Some(&first) = kinds.first() else {
        return Err(EncoderError::NoEncoder { name, description });
    };
    let wanted = features.unwrap_or(first);
    let Some(&kind) = kinds.iter().find(|&&kind| kind == wanted) else {
        let wanted = wanted.to_owned();
        return Err(EncoderError::NoFeatures { name, description, wanted, kinds });
    };
    let file = file(&*model);
    let model = Box::new(ModelEncoder { model, kind });
    Ok(Encoder { name, features: kind.to_owned(), model, file })
}

/// The encoder that is stored as part of a tagger's file.
pub(crate) fn part_encoder(
    model: Box<dyn Model>,
    file: &ModelFile,
    features: &str,
) -> Result<Box<dyn WordEncoder>, FileError> {
    let kinds = model.feature_kinds();
    let Some(&kind) = kinds.iter().find(|&&kind| kind == features) else {
        return Err(file.invalid(format!("its encoder has no features `{features}`")));
    };
    Ok(Box::new(ModelEncoder { model, kind }))
}

struct ModelEncoder {
    model: Box<dyn Model>,
    kind: &'static str,
}

impl ModelEncoder {
    fn id(&self, word: &str) -> WordId {
        self.model.word_id(&self.model.lexicon().preprocessing.normalize(word))
    }
}

impl WordEncoder for ModelEncoder {
    fn n_features(&self) -> usize {
        self.model.encoder(self.kind).expect("it has this kind").n_features()
    }

    fn encode(&self, words: &[&str], out: &mut FeatureRows) {
        let mut ids: Vec<WordId> = words.iter().map(|word| self.id(word)).collect();
        // The last word of a sentence is one that nothing follows.
        ids.push(WordId::EOS);
        let mut rows = FeatureRows::new();
        self.model.encoder(self.kind).expect("it has this kind").encode(&ids, &mut rows);
        for (columns, values) in rows.iter().take(words.len()) {
            out.push_sparse(columns.iter().copied().zip(values.iter().copied()));
        }
    }

    fn knows(&self, word: &str) -> bool {
        let lexicon = self.model.lexicon();
        lexicon.vocab.id(&lexicon.preprocessing.normalize(word)) != WordId::UNK
    }
}
