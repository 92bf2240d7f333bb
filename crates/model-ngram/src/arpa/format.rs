//! Names and numbers of the format, and its errors.

use latens_corpus::LineError;
use std::io;
use thiserror::Error;

/// The start of a sentence.
pub(super) const BEGIN: &str = "<s>";
/// The end of a sentence.
pub(super) const END: &str = "</s>";
/// The unknown word in files of some toolkits.
pub(super) const OTHER_UNK: &str = "<UNK>";
/// Base-10 logarithm that stands for probability zero.
pub(super) const LOG_ZERO: f32 = -99.0;

/// Failure to read or write the ARPA format.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ArpaError {
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The format cannot represent a word.
    #[error("the word {word:?} cannot be written in the ARPA format")]
    Word {
        /// The word.
        word: String,
    },
    /// A line does not follow the format.
    #[error("line {line}: {problem}")]
    Line {
        /// Line number, counted from 1.
        line: u64,
        /// What is wrong with the line.
        problem: String,
    },
}

impl From<LineError> for ArpaError {
    fn from(error: LineError) -> ArpaError {
        match error {
            LineError::Io(error) => ArpaError::Io(error),
            LineError::Line { line, problem } => ArpaError::Line { line, problem },
        }
    }
}
