use latens_store::{ContainerError, StorageError};
use std::io;
use thiserror::Error;

/// A text or a vocabulary file could not be read.
///
/// Text in memory is called `lines`, `texts` or `rows` where a file would have its name.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be opened or read.
    #[error("cannot read `{file}`")]
    Io {
        /// Path of the file; `-` for the standard input.
        file: String,
        /// Error from the operating system.
        #[source]
        source: io::Error,
    },
    /// The file has no bytes.
    #[error("`{file}` is empty")]
    Empty {
        /// Path of the file.
        file: String,
    },
    /// The files contain no words.
    #[error("there are no words in {files}")]
    NoWords {
        /// Paths of all files, each in backticks.
        files: String,
    },
    /// Cleaning leaves no words of the files.
    #[error("no words of {files} are left after cleaning")]
    NoWordsLeft {
        /// Paths of all files, each in backticks.
        files: String,
    },
    /// The file contains bytes that are not UTF-8.
    #[error("`{file}` is not UTF-8: invalid bytes in line {line}")]
    NotUtf8 {
        /// Path of the file.
        file: String,
        /// Line number, counted from 1.
        line: u64,
    },
    /// The file contains a NUL byte, so it is binary or UTF-16.
    #[error("`{file}` is not plain text: NUL byte in line {line}")]
    Nul {
        /// Path of the file.
        file: String,
        /// Line number, counted from 1.
        line: u64,
    },
    /// A record is longer than [`Inputs::max_line`](crate::Inputs::max_line).
    #[error("`{file}`, line {line}: the {record} that begins here is longer than {}", size_text(*.limit))]
    TooLong {
        /// Path of the file.
        file: String,
        /// Number of the first line of the record, counted from 1.
        line: u64,
        /// What a record of the format is: `line`, `row`, `sentence` or `document`.
        record: &'static str,
        /// The limit in bytes.
        limit: usize,
    },
    /// A line does not follow the format.
    #[error("`{file}`, line {line}: {problem}")]
    Line {
        /// Path of the file.
        file: String,
        /// Line number, counted from 1.
        line: u64,
        /// Description of the problem.
        problem: String,
    },
    /// A word or tag in memory could not be written to a file and read again.
    #[error("sentence {sentence}: {problem}")]
    Token {
        /// Sentence number, counted from 1.
        sentence: usize,
        /// Description of the problem.
        problem: String,
    },
    /// The file is not a vocabulary file, or it is damaged.
    #[error("`{file}` is not a vocabulary file: {problem}")]
    NotAVocabulary {
        /// Path of the file.
        file: String,
        /// Description of the problem.
        problem: String,
    },
    /// The file does not have the form of a `tokenizer.json`.
    #[error("`{file}` is not a tokenizer: {problem}")]
    NotATokenizer {
        /// Path of the file.
        file: String,
        /// Description of the problem.
        problem: String,
    },
    /// An array of token ids needs a tokenizer.
    #[error("`{file}` contains token ids, but no tokenizer is given")]
    NoTokenNames {
        /// Path of the file.
        file: String,
    },
    /// An encoded text is damaged, foreign or newer, or cannot be written.
    #[error(transparent)]
    Encoded(#[from] ContainerError),
    /// A file of this program cannot be written or mapped.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// A number of bytes with the largest unit that divides it, such as `256 MiB`.
pub(crate) fn size_text(bytes: usize) -> String {
    match bytes {
        0 => "0 bytes".to_owned(),
        _ if bytes.is_multiple_of(1 << 30) => format!("{} GiB", bytes >> 30),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} bytes"),
    }
}
