//! Any model with token features, as an encoder of words.

use super::word_encoder::{GpuWordEncoder, WordEncoder};
use latens_corpus::WordId;
use latens_model::{DeviceError, FeatureRows, GpuEncoder, Model, TokenEncoder};
use rayon::prelude::*;
use std::convert::Infallible;
use thiserror::Error;

/// Why a model cannot be used as an encoder.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncoderError {
    /// The model has no token features.
    #[error("`{name}` is {description}, which has no token features")]
    NoFeatures {
        /// Name of the model.
        name: String,
        /// Description of the model.
        description: &'static str,
    },
    /// The model does not have the requested features.
    #[error("`{name}` is {description}, which has no features `{wanted}`, only {}", quoted(kinds))]
    UnknownFeatures {
        /// Name of the model.
        name: String,
        /// Description of the model.
        description: &'static str,
        /// The requested features.
        wanted: String,
        /// The features of the model.
        kinds: Vec<&'static str>,
    },
}

fn quoted(kinds: &[&str]) -> String {
    kinds.iter().map(|kind| format!("`{kind}`")).collect::<Vec<_>>().join(", ")
}

/// A model as an encoder of words, with one of its kinds of features.
#[derive(Debug)]
pub struct ModelEncoder {
    model: Box<dyn Model>,
    kind: &'static str,
}

impl ModelEncoder {
    /// An encoder with the given kind of features or the default one of the model. `name` is used in errors.
    pub fn new(
        name: &str,
        model: Box<dyn Model>,
        features: Option<&str>,
    ) -> Result<ModelEncoder, EncoderError> {
        let (kinds, description) = (model.feature_kinds(), model.description());
        let Some(&first) = kinds.first() else {
            return Err(EncoderError::NoFeatures { name: name.to_owned(), description });
        };
        let wanted = features.unwrap_or(first);
        match kinds.iter().find(|&&kind| kind == wanted) {
            Some(&kind) => Ok(ModelEncoder { model, kind }),
            None => {
                let (name, wanted) = (name.to_owned(), wanted.to_owned());
                Err(EncoderError::UnknownFeatures { name, description, wanted, kinds })
            }
        }
    }

    /// Kind of features.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    fn id(&self, word: &str) -> WordId {
        self.model.word_id(&self.model.lexicon().preprocessing.normalize_word(word))
    }

    /// The words of a sentence, and its end, which is context of the last words.
    fn ids(&self, words: &[&str]) -> Vec<WordId> {
        words.iter().map(|word| self.id(word)).chain([WordId::EOS]).collect()
    }

    fn encoder(&self) -> Box<dyn TokenEncoder + '_> {
        self.model.encoder(self.kind).expect("the kind was checked")
    }

    /// The rows of the words of sentences, given those of their ids.
    fn rows_of_words<E>(
        &self,
        sentences: &[Vec<&str>],
        encode_all: impl FnOnce(&[&[WordId]]) -> Result<Vec<FeatureRows>, E>,
    ) -> Result<Vec<FeatureRows>, E> {
        let ids: Vec<Vec<WordId>> = sentences.par_iter().map(|words| self.ids(words)).collect();
        let ids: Vec<&[WordId]> = ids.iter().map(Vec::as_slice).collect();
        let rows = encode_all(&ids)?.into_par_iter().zip(sentences);
        let of_words = rows.map(|(all, words)| {
            let mut rows = FeatureRows::new();
            push_words(&all, words.len(), &mut rows);
            rows
        });
        Ok(of_words.collect())
    }
}

impl WordEncoder for ModelEncoder {
    fn n_features(&self) -> usize {
        self.encoder().n_features()
    }

    fn encode(&self, words: &[&str], out: &mut FeatureRows) {
        let mut rows = FeatureRows::new();
        self.encoder().encode(&self.ids(words), &mut rows);
        push_words(&rows, words.len(), out);
    }

    fn encode_all(&self, sentences: &[Vec<&str>]) -> Vec<FeatureRows> {
        let encode_all = |ids: &[&[WordId]]| Ok::<_, Infallible>(self.encoder().encode_all(ids));
        let Ok(rows) = self.rows_of_words(sentences, encode_all);
        rows
    }

    fn values_per_token(&self) -> usize {
        self.encoder().values_per_token()
    }

    fn on_gpu(&self) -> Option<Result<Box<dyn GpuWordEncoder + '_>, DeviceError>> {
        let on_gpu = self.model.gpu_encoder(self.kind)?;
        Some(on_gpu.map(|on_gpu| -> Box<dyn GpuWordEncoder + '_> {
            Box::new(ModelEncoderOnGpu { encoder: self, on_gpu })
        }))
    }

    fn knows(&self, word: &str) -> bool {
        let lexicon = self.model.lexicon();
        lexicon.vocab.id(&lexicon.preprocessing.normalize_word(word)) != WordId::UNK
    }
}

/// A model on a GPU as an encoder of words.
struct ModelEncoderOnGpu<'m> {
    encoder: &'m ModelEncoder,
    on_gpu: Box<dyn GpuEncoder + 'm>,
}

impl GpuWordEncoder for ModelEncoderOnGpu<'_> {
    fn encode_all(&mut self, sentences: &[Vec<&str>]) -> Result<Vec<FeatureRows>, DeviceError> {
        self.encoder.rows_of_words(sentences, |ids| self.on_gpu.encode_all(ids))
    }
}

/// Appends the rows of words, without that of the end of the sentence.
fn push_words(rows: &FeatureRows, n_words: usize, out: &mut FeatureRows) {
    for (columns, values) in rows.iter().take(n_words) {
        out.push_sparse(columns.iter().copied().zip(values.iter().copied()));
    }
}
