use std::io;
use thiserror::Error;

/// The most numbers that a vector may have: more are a sign that the file is something else.
pub const MAX_DIM: usize = 1 << 16;

/// A file that is no list of word vectors, or vectors that a format has no place for.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum VectorsError {
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The first line does not say how many vectors there are, and how long.
    #[error("the first line must be two numbers, of words and of columns, but is `{found}`")]
    NoHeader {
        /// The begin of what stands there.
        found: String,
    },
    /// A word or its vector is not as it must be.
    #[error("{unit} {number}: {problem}")]
    Entry {
        /// What is counted: `line` or `vector`.
        unit: &'static str,
        /// Which of them it is, counted from 1.
        number: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// There are more or fewer vectors than there should be.
    #[error("{expected} vectors expected, but there are {found}")]
    Number {
        /// How many there should be.
        expected: u64,
        /// How many there are; at least, if there are more.
        found: String,
    },
    /// The numbers are not written as a reader here knows.
    #[error("the matrix cannot be read: {problem}")]
    Matrix {
        /// Why not.
        problem: String,
    },
    /// There is no vector at all.
    #[error("there are no vectors")]
    Empty,
    /// The format marks the end of a word by a letter that this word has.
    #[error("the word {word:?} has a blank or a line break, which this format has no place for")]
    Blank {
        /// The word.
        word: String,
    },
}
