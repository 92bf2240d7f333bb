//! Errors of training.

use latens_corpus::MissingColumn;
use latens_model::{FitError, ParamError};
use thiserror::Error;

/// Why a tagger could not be fitted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TaggerError {
    /// The text lacks a column.
    #[error(transparent)]
    Column(#[from] MissingColumn),
    /// A column has too many distinct values to be a column of tags.
    #[error(
        "column {column} has {n_tags} distinct tags, at most {MAX_TAGS} are allowed: is it the right column?"
    )]
    TooManyTags {
        /// The column, counted from 1.
        column: usize,
        /// Number of distinct tags.
        n_tags: usize,
    },
    /// There are neither lexical features nor encoders.
    #[error("a tagger without lexical features needs an encoder")]
    NoFeatures,
    /// Training failed.
    #[error(transparent)]
    Fit(#[from] FitError),
}

/// Maximum number of tags. The number of transitions grows with its square.
pub(crate) const MAX_TAGS: usize = 1000;

impl From<ParamError> for TaggerError {
    fn from(error: ParamError) -> TaggerError {
        TaggerError::Fit(error.into())
    }
}
