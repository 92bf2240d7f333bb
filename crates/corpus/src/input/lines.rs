//! Lines of files that are not running text, such as vocabularies, vectors and clusters.

use crate::error::size_text;
use crate::input::inputs::DEFAULT_MAX_LINE;
use memchr::memchr;
use std::io::{self, BufRead};
use thiserror::Error;

/// Reads lines in bounded memory, with their numbers.
///
/// A line that is too long and a NUL byte are errors as soon as they arrive. A binary or compressed file
/// without line breaks is therefore never read into memory.
///
/// ```
/// use latens_corpus::LineReader;
///
/// let mut input = "one\r\ntwo".as_bytes();
/// let mut lines = LineReader::new(&mut input);
/// assert_eq!(lines.next_line()?, Some(&b"one"[..]));
/// assert_eq!(lines.next_line()?, Some(&b"two"[..]));
/// assert_eq!(lines.number(), 2);
/// assert_eq!(lines.next_line()?, None);
/// # Ok::<(), latens_corpus::LineError>(())
/// ```
pub struct LineReader<'a> {
    input: &'a mut dyn BufRead,
    max_line: usize,
    line: Vec<u8>,
    number: u64,
}

/// A line cannot be read.
///
/// Exhaustive: readers of other formats turn both cases into their own errors.
#[derive(Debug, Error)]
pub enum LineError {
    /// Reading failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The line is too long or not plain text.
    #[error("line {line}: {problem}")]
    Line {
        /// Line number, counted from 1.
        line: u64,
        /// Description of the problem.
        problem: String,
    },
}

impl<'a> LineReader<'a> {
    /// Reads lines of at most [`DEFAULT_MAX_LINE`] bytes.
    pub fn new(input: &'a mut dyn BufRead) -> LineReader<'a> {
        LineReader { input, max_line: DEFAULT_MAX_LINE, line: Vec::new(), number: 0 }
    }

    /// Sets the maximum length of a line in bytes, including its line break.
    #[must_use]
    pub fn max_line(mut self, max_line: usize) -> Self {
        self.max_line = max_line;
        self
    }

    /// Reads the next line and returns it without its line break; `None` at the end of the input.
    pub fn next_line(&mut self) -> Result<Option<&[u8]>, LineError> {
        self.line.clear();
        self.number += 1;
        while self.pull()? {}
        if self.line.is_empty() {
            return Ok(None);
        }
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)))
    }

    /// Like [`LineReader::next_line`], for lines that must be UTF-8.
    pub fn next_str(&mut self) -> Result<Option<&str>, LineError> {
        let line = self.number + 1;
        let Some(text) = self.next_line()? else { return Ok(None) };
        let text = std::str::from_utf8(text)
            .map_err(|_| LineError::Line { line, problem: "it is not valid UTF-8".to_owned() })?;
        Ok(Some(text))
    }

    /// Number of the last line read, counted from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Adds the bytes that have arrived to the line. Returns whether more may follow.
    fn pull(&mut self) -> Result<bool, LineError> {
        let arrived = match self.input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(true),
            arrived => arrived?,
        };
        let end = memchr(b'\n', arrived);
        let piece = end.map_or(arrived, |end| &arrived[..=end]);
        let problem = if memchr(0, piece).is_some() {
            "it contains a NUL byte, so the file is not plain text".to_owned()
        } else if self.line.len() + piece.len() > self.max_line {
            format!("it is longer than {}", size_text(self.max_line))
        } else {
            let (goes_on, n_bytes) = (end.is_none() && !piece.is_empty(), piece.len());
            self.line.extend_from_slice(piece);
            self.input.consume(n_bytes);
            return Ok(goes_on);
        };
        Err(LineError::Line { line: self.number, problem })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::tests::Endless;
    use std::io::BufReader;

    #[test]
    fn a_line_without_end_is_refused_in_bounded_memory() {
        let mut input = BufReader::new(Endless::new(b"ab"));
        let error = LineReader::new(&mut input).max_line(1 << 16).next_line().unwrap_err();
        assert_eq!(error.to_string(), "line 1: it is longer than 64 KiB");
        assert!(input.get_ref().n_read <= 1 << 17, "{}", input.get_ref().n_read);
    }

    #[test]
    fn a_nul_byte_is_refused_as_it_arrives() {
        let mut input = BufReader::new(Endless::new(b"\0\0"));
        let error = LineReader::new(&mut input).next_line().unwrap_err();
        assert!(error.to_string().starts_with("line 1: it contains a NUL byte"), "{error}");
        assert!(input.get_ref().n_read <= 1 << 16, "{}", input.get_ref().n_read);
    }

    #[test]
    fn lines_end_with_any_line_break_and_keep_their_numbers() {
        let mut input = BufReader::with_capacity(2, "a b\r\n\n\rc\rd".as_bytes());
        let mut lines = LineReader::new(&mut input).max_line(5);
        let mut found = Vec::new();
        while let Some(line) = lines.next_str().unwrap() {
            found.push(line.to_owned());
        }
        assert_eq!(found, ["a b", "", "\rc\rd"]);
        let mut input = &b"a\n\xff\n"[..];
        let mut lines = LineReader::new(&mut input);
        assert_eq!(lines.next_str().unwrap(), Some("a"));
        assert_eq!(lines.next_str().unwrap_err().to_string(), "line 2: it is not valid UTF-8");
    }
}
