//! Documents that are whole before they are split into words: rows of a table, or files of a folder.

use crate::error::ReadError;
use crate::input::inputs::Invalid;
use memchr::{memchr, memchr_iter};

/// Approximate size of a block in bytes: large enough to keep a thread busy for milliseconds, small
/// enough that a few blocks per thread fit in the cache.
pub(crate) const BLOCK_BYTES: usize = 1 << 20;

/// One document with its text and names.
pub(crate) struct Row {
    pub(crate) text: String,
    pub(crate) id: String,
    pub(crate) label: String,
    /// The columns of [`Columns::kept`](crate::Columns::kept).
    pub(crate) kept: Vec<String>,
    /// First line of the row in its file.
    pub(crate) line: u64,
}

/// Converts bytes to text. Invalid bytes are an error or become replacement characters.
pub(crate) fn text_of(
    bytes: Vec<u8>,
    file: &str,
    first_line: u64,
    invalid: Invalid,
) -> Result<String, ReadError> {
    let line =
        |bytes: &[u8], at: usize| first_line + memchr_iter(b'\n', &bytes[..at]).count() as u64;
    if invalid == Invalid::Replace {
        let text = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        return Ok(if text.contains('\0') { text.replace('\0', "\u{FFFD}") } else { text });
    }
    if let Some(at) = memchr(0, &bytes) {
        return Err(ReadError::Nul { file: file.to_owned(), line: line(&bytes, at) });
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        ReadError::NotUtf8 { file: file.to_owned(), line: line(error.as_bytes(), at) }
    })
}
