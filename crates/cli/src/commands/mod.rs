//! One file a command: its arguments, and how its result is shown.

pub(crate) mod convert;
pub(crate) mod count;
pub(crate) mod demo;
pub(crate) mod encode;
pub(crate) mod inspect;
pub(crate) mod manual;
pub(crate) mod nearest;
pub(crate) mod perplexity;
#[cfg(feature = "reproduce")]
pub(crate) mod reproduce;
pub(crate) mod sample;
pub(crate) mod tag;
pub(crate) mod topics;
pub(crate) mod vectors;
pub(crate) mod vocab;

use crate::errors::hinted;
use anyhow::Result;
use latens::AnyModel;
use latens::model::{LanguageModel, TopicModel};
use std::path::Path;

/// The model as a language model, or an error that says which models are.
pub(crate) fn language_model<'a>(
    model: &'a AnyModel,
    path: &Path,
) -> Result<&'a dyn LanguageModel> {
    model.as_language_model().ok_or_else(|| {
        hinted(
            format!("`{}` is {}: it gives no probabilities", path.display(), model.description()),
            "train a language model, e.g., `latens train ngram news.txt -o news.ngram`",
        )
    })
}

/// The model as a topic model, or an error that says which models are.
pub(crate) fn topic_model<'a>(model: &'a AnyModel, path: &Path) -> Result<&'a dyn TopicModel> {
    model.as_topic_model().ok_or_else(|| {
        hinted(
            format!("`{}` is {}: it has no topics", path.display(), model.description()),
            "train a topic model, e.g., `latens train lda docs.txt -o docs.lda`",
        )
    })
}
