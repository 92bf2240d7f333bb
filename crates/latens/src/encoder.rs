//! Any model that gives features of words, as a part of a tagger.

use crate::any_model::{AnyModel, open_file};
use latens_corpus::WordId;
use latens_model::FeatureRows;
use latens_model::file::{FileError, ModelFile};
use latens_store::{FlatArray, StorageError, map_file};
use latens_tasks::tagging::{Encoder, WordEncoder};
use std::path::Path;
use thiserror::Error;

/// Why a model cannot be the encoder that is wanted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EncoderError {
    /// The file cannot be opened.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The model gives no features of words.
    #[error("`{name}` is {description}: it gives no features of words")]
    NoEncoder {
        /// The file.
        name: String,
        /// What it is.
        description: &'static str,
    },
    /// The model gives other features.
    #[error("`{name}` is {description}, which has no features `{wanted}`, but {}", quoted(kinds))]
    NoFeatures {
        /// The file.
        name: String,
        /// What it is.
        description: &'static str,
        /// The features that are wanted.
        wanted: String,
        /// Those that it has.
        kinds: Vec<&'static str>,
    },
}

fn quoted(kinds: &[&str]) -> String {
    kinds.iter().map(|kind| format!("`{kind}`")).collect::<Vec<_>>().join(", ")
}

/// Opens a model as an encoder of one of its [`AnyModel::feature_kinds`], or of the first one.
pub fn open_encoder(path: &Path, features: Option<&str>) -> Result<Encoder, EncoderError> {
    let model = open_file(&ModelFile::open(path)?)?;
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let (kinds, description) = (model.feature_kinds(), model.description());
    let Some(&first) = kinds.first() else {
        return Err(EncoderError::NoEncoder { name, description });
    };
    let wanted = features.unwrap_or(first);
    let Some(&kind) = kinds.iter().find(|&&kind| kind == wanted) else {
        let wanted = wanted.to_owned();
        return Err(EncoderError::NoFeatures { name, description, wanted, kinds });
    };
    let map = map_file(path)?;
    let n_bytes = map.len();
    let file = FlatArray::mapped(map, 0..n_bytes).expect("bytes lie anywhere");
    Ok(Encoder {
        name,
        features: kind.to_owned(),
        model: Box::new(ModelEncoder { model, kind }),
        file,
    })
}

/// The encoder in a file, as taggers open those that are part of them.
pub(crate) fn encoder_of(
    file: &ModelFile,
    features: &str,
) -> Result<Box<dyn WordEncoder>, FileError> {
    let model = open_file(file)?;
    let kinds = model.feature_kinds();
    let Some(&kind) = kinds.iter().find(|&&kind| kind == features) else {
        return Err(file.invalid(format!("its encoder has no features `{features}`")));
    };
    Ok(Box::new(ModelEncoder { model, kind }))
}

struct ModelEncoder {
    model: AnyModel,
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
        // Models of sentences know something of the last word from what follows it: nothing.
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
