use latens_store::ContainerError;
use latens_store::StorageError;
use std::io;
use thiserror::Error;

/// A text could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be opened or read.
    #[error("cannot read `{file}`")]
    Io {
        /// The file, `-` for the standard input.
        file: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file has not a single byte.
    #[error("`{file}` is empty")]
    Empty {
        /// The file.
        file: String,
    },
    /// Not a single word in all files.
    #[error("there are no words in {files}")]
    NoWords {
        /// All files that were read, each in backticks.
        files: String,
    },
    /// Bytes that are no UTF-8.
    #[error("`{file}` is not UTF-8: invalid bytes in line {line}")]
    NotUtf8 {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
    },
    /// A NUL, which no text has: the file is binary, or UTF-16.
    #[error("`{file}` is not plain text: NUL byte in line {line}")]
    Nul {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
    },
    /// A line that does not fit the format.
    #[error("`{file}`, line {line}: {problem}")]
    Line {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// An encoded text that is damaged, foreign or newer, or cannot be written.
    #[error(transparent)]
    Encoded(#[from] ContainerError),
    /// A file of ours that cannot be written or mapped.
    #[error(transparent)]
    Storage(#[from] StorageError),
}
