//! A model in the role that a command needs.

use crate::errors::hinted;
use anyhow::Result;
use latens::model::{LanguageModel, Model, TopicModel};
use std::path::Path;

/// The model as a language model, or an error that says which models are.
pub(crate) fn language_model<'a>(
    model: &'a dyn Model,
    path: &Path,
) -> Result<&'a dyn LanguageModel> {
    model.as_language_model().ok_or_else(|| {
        hinted(
            format!("`{}` is {}, not a language model", path.display(), model.description()),
            "train a language model, e.g., `latens train ngram news.txt -o news.ngram`",
        )
    })
}

/// The model as a topic model, or an error that says which models are.
pub(crate) fn topic_model<'a>(model: &'a dyn Model, path: &Path) -> Result<&'a dyn TopicModel> {
    model.as_topic_model().ok_or_else(|| {
        hinted(
            format!("`{}` is {}, not a topic model", path.display(), model.description()),
            "train a topic model, e.g., `latens train lda docs.txt -o docs.lda`",
        )
    })
}
