use latens_corpus::LineError;
use std::io;
use thiserror::Error;

/// Maximum dimension of a vector. A larger one suggests that the file is not a list of vectors.
pub const MAX_DIM: usize = 1 << 16;

/// Word vectors cannot be read, or a format cannot represent them.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum VectorsError {
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The header line is missing or malformed.
    #[error("the first line must have the number of words and the dimension, got `{found}`")]
    NoHeader {
        /// The beginning of the line.
        found: String,
    },
    /// A word or its vector is invalid.
    #[error("{unit} {number}: {problem}")]
    Entry {
        /// The unit of `number`: `line` or `vector`.
        unit: &'static str,
        /// One-based line or vector number.
        number: u64,
        /// The problem.
        problem: String,
    },
    /// The number of vectors does not match the header.
    #[error("expected {expected} vectors, found {found}")]
    Number {
        /// Expected number of vectors.
        expected: u64,
        /// Actual number of vectors, or `more`.
        found: String,
    },
    /// The matrix format is not supported.
    #[error("cannot read the matrix: {problem}")]
    Matrix {
        /// The reason.
        problem: String,
    },
    /// The input has no vectors.
    #[error("the file has no vectors")]
    Empty,
    /// The word contains whitespace that the format uses as a separator.
    #[error("the word {word:?} contains whitespace, which this format cannot represent")]
    Blank {
        /// The word.
        word: String,
    },
}

impl From<LineError> for VectorsError {
    fn from(error: LineError) -> VectorsError {
        match error {
            LineError::Io(error) => VectorsError::Io(error),
            LineError::Line { line, problem } => {
                VectorsError::Entry { unit: "line", number: line, problem }
            }
        }
    }
}
