//! Text cut into blocks of whole records that threads can share.

use crate::compression::open_input;
use crate::error::ReadError;
use crate::input::columns::Columns;
use crate::input::folder::FolderReader;
use crate::input::format::Format;
use crate::input::inputs::{Inputs, Invalid};
use crate::input::rows::{BLOCK_BYTES, Row};
use crate::input::table::Table;
use crate::token_ids::reader::IdsReader;
use memchr::{memchr, memchr_iter};
use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

/// Iterator over the blocks of one text.
pub(crate) struct Blocks<'a> {
    reader: Box<dyn Read + 'a>,
    format: Format,
    file: String,
    invalid: Invalid,
    max_line: usize,
    /// Bytes read that belong to the next block.
    rest: Vec<u8>,
    /// First line of the next block.
    line: u64,
    at_start: bool,
    columns: Arc<Columns>,
    /// Documents that are whole already, instead of `reader`.
    rows: Option<Rows<'a>>,
}

/// Where whole documents come from.
enum Rows<'a> {
    Table(Box<Table<'a>>),
    Folder(FolderReader),
}

/// Some whole records of one text.
pub(crate) struct Block {
    bytes: Vec<u8>,
    /// Documents that are whole already, instead of `bytes`.
    pub(crate) rows: Vec<Row>,
    n_bytes: usize,
    pub(crate) columns: Arc<Columns>,
    pub(crate) file: String,
    pub(crate) format: Format,
    pub(crate) first_line: u64,
    invalid: Invalid,
}

impl<'a> Blocks<'a> {
    pub(crate) fn new(
        reader: Box<dyn Read + 'a>,
        format: Format,
        file: String,
        invalid: Invalid,
        max_line: usize,
    ) -> Blocks<'a> {
        let (rest, line, at_start, columns) = (Vec::new(), 1, true, Arc::default());
        Blocks {
            reader,
            format,
            file,
            invalid,
            max_line,
            rest,
            line,
            at_start,
            columns,
            rows: None,
        }
    }

    /// Opens a file.
    pub(crate) fn open(path: &Path, inputs: &Inputs) -> Result<Blocks<'a>, ReadError> {
        let file = path.display().to_string();
        let &Inputs { invalid, max_line, ref columns, .. } = inputs;
        if inputs.folders && path.is_dir() {
            let rows = Rows::Folder(FolderReader::open(path, invalid, max_line)?);
            let blocks = Blocks::new(Box::new(io::empty()), Format::Lines, file, invalid, max_line);
            return Ok(Blocks { rows: Some(rows), ..blocks });
        }
        let format = inputs.format.clone().unwrap_or_else(|| Format::of_path(path));
        let reader: Box<dyn Read + 'a> = if format == Format::Ids {
            let names = inputs.token_names.clone();
            let names = names.ok_or_else(|| ReadError::NoTokenNames { file: file.clone() })?;
            let reader = IdsReader::open(path, names, max_line);
            Box::new(reader.map_err(|source| ReadError::Io { file: file.clone(), source })?)
        } else {
            open_input(path).map_err(|source| ReadError::Io { file: file.clone(), source })?
        };
        let (reader, delimiter) = match format {
            Format::Csv => (reader, Some(b',')),
            Format::Tsv => {
                let (reader, has_header) = look_for_header(reader, columns, max_line)
                    .map_err(|source| ReadError::Io { file: file.clone(), source })?;
                (reader, has_header.then_some(b'\t'))
            }
            _ => (reader, None),
        };
        let Some(delimiter) = delimiter else {
            let blocks = Blocks::new(reader, format, file, invalid, max_line);
            return Ok(Blocks { columns: Arc::new(columns.clone()), ..blocks });
        };
        let table = Table::open(reader, delimiter, columns, file.clone(), invalid, max_line)?;
        let blocks = Blocks::new(Box::new(io::empty()), format, file, invalid, max_line);
        Ok(Blocks { rows: Some(Rows::Table(Box::new(table))), ..blocks })
    }

    /// Reads the next block of whole documents.
    fn next_rows(&mut self) -> Result<Option<Block>, ReadError> {
        let (rows, n_bytes) = match &mut self.rows {
            Some(Rows::Table(table)) => table.rows()?,
            Some(Rows::Folder(folder)) => folder.rows()?,
            None => (Vec::new(), 0),
        };
        let Some(first_line) = rows.first().map(|row| row.line) else { return Ok(None) };
        let (file, format, columns) =
            (self.file.clone(), self.format.clone(), self.columns.clone());
        let (bytes, invalid) = (Vec::new(), self.invalid);
        Ok(Some(Block { bytes, rows, n_bytes, columns, file, format, first_line, invalid }))
    }

    /// Reads the next block; `None` at the end of the text.
    pub(crate) fn next(&mut self) -> Result<Option<Block>, ReadError> {
        if self.rows.is_some() {
            return self.next_rows();
        }
        let mut bytes = std::mem::take(&mut self.rest);
        let cut = loop {
            let searched = bytes.len();
            // Doubling keeps the search for the end of a long record linear.
            let room = self.max_line.saturating_add(1).saturating_sub(searched);
            let goes_on = self.pull(&mut bytes, searched.min(room).max(BLOCK_BYTES))?;
            if !goes_on {
                break bytes.len();
            }
            if let Some(end) = self.format.last_record_end(&bytes, searched) {
                break end;
            }
            if bytes.len() > self.max_line {
                return Err(self.too_long(self.line));
            }
        };
        if cut > self.max_line
            && let Some(at) = self.format.first_longer_than(self.max_line, &bytes[..cut])
        {
            return Err(self.too_long(self.line_at(&bytes, at)));
        }
        self.rest = bytes.split_off(cut);
        if bytes.is_empty() {
            return Ok(None);
        }
        let first_line = self.line;
        self.line += memchr_iter(b'\n', &bytes).count() as u64;
        let (file, format, columns) =
            (self.file.clone(), self.format.clone(), self.columns.clone());
        let (rows, n_bytes, invalid) = (Vec::new(), bytes.len(), self.invalid);
        Ok(Some(Block { bytes, rows, n_bytes, columns, file, format, first_line, invalid }))
    }

    /// Reads `wanted` bytes. Returns `false` if the text ended before.
    ///
    /// A NUL byte is an error as it arrives: a binary file may have no line breaks.
    fn pull(&mut self, bytes: &mut Vec<u8>, wanted: usize) -> Result<bool, ReadError> {
        let until = bytes.len() + wanted;
        while bytes.len() < until {
            let (begin, piece) = (bytes.len(), BLOCK_BYTES.min(until - bytes.len()));
            let read = (&mut self.reader).take(piece as u64).read_to_end(bytes);
            let n_read =
                read.map_err(|source| ReadError::Io { file: self.file.clone(), source })?;
            if self.invalid == Invalid::Error
                && let Some(at) = memchr(0, &bytes[begin..])
            {
                let line = self.line_at(bytes, begin + at);
                return Err(ReadError::Nul { file: self.file.clone(), line });
            }
            if self.at_start {
                self.start(bytes)?;
            }
            if n_read < piece {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The line of a byte of the next block.
    fn line_at(&self, bytes: &[u8], at: usize) -> u64 {
        self.line + memchr_iter(b'\n', &bytes[..at]).count() as u64
    }

    fn too_long(&self, line: u64) -> ReadError {
        let (file, record, limit) = (self.file.clone(), self.format.record_name(), self.max_line);
        ReadError::TooLong { file, line, record, limit }
    }

    fn start(&mut self, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        self.at_start = false;
        if bytes.is_empty() {
            return Err(ReadError::Empty { file: self.file.clone() });
        }
        // Some editors write a byte-order mark. It must not become part of the first word.
        if bytes.starts_with(b"\xEF\xBB\xBF") {
            bytes.drain(..3);
        }
        Ok(())
    }
}

/// Whether the first line of a file with tabs is a header: it names the text column, or columns were asked
/// for. Returns the input from its beginning.
fn look_for_header<'a>(
    reader: Box<dyn Read + 'a>,
    columns: &Columns,
    max_line: usize,
) -> io::Result<(Box<dyn Read + 'a>, bool)> {
    let mut reader = BufReader::new(reader);
    let mut first = Vec::new();
    (&mut reader).take(max_line as u64).read_until(b'\n', &mut first)?;
    let line = String::from_utf8_lossy(&first);
    let names = line.trim_start_matches('\u{feff}').trim_end_matches(['\r', '\n']).split('\t');
    let has_header = *columns != Columns::default()
        || names.map(|name| name.trim_matches('"')).any(|name| name == columns.text_name());
    drop(line);
    Ok((Box::new(io::Cursor::new(first).chain(reader)), has_header))
}

impl Block {
    /// Number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.n_bytes
    }

    /// The text of the block. Invalid bytes are an error or become replacement characters.
    pub(crate) fn text(&self) -> Result<Cow<'_, str>, ReadError> {
        if self.invalid == Invalid::Replace {
            let text = String::from_utf8_lossy(&self.bytes);
            return Ok(if memchr(0, &self.bytes).is_some() {
                Cow::Owned(text.replace('\0', "\u{FFFD}"))
            } else {
                text
            });
        }
        std::str::from_utf8(&self.bytes).map(Cow::Borrowed).map_err(|error| ReadError::NotUtf8 {
            file: self.file.clone(),
            line: {
                let before = &self.bytes[..error.valid_up_to()];
                self.first_line + memchr_iter(b'\n', before).count() as u64
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::tests::Endless;

    /// Reads an endless text. Returns the error and the number of bytes that were read before it.
    fn error_of(
        pattern: &'static [u8],
        format: Format,
        max_line: usize,
        invalid: Invalid,
    ) -> (String, usize) {
        let mut input = Endless::new(pattern);
        let mut blocks =
            Blocks::new(Box::new(&mut input), format, "a".to_owned(), invalid, max_line);
        let error = loop {
            match blocks.next() {
                Ok(Some(block)) => assert!(block.len() <= max_line + BLOCK_BYTES),
                Ok(None) => panic!("the text has no end"),
                Err(error) => break error.to_string(),
            }
        };
        drop(blocks);
        (error, input.n_read)
    }

    #[test]
    fn a_record_without_end_is_refused_in_bounded_memory() {
        let max_line = 5 << 20;
        let formats = [
            (Format::Lines, &b"ab"[..], "line"),
            (Format::Docs(Vec::new()), b"ab\t", "line"),
            (Format::Jsonl, b"{\"text\":", "line"),
            (Format::Conll, b"dogs NNS\n", "sentence"),
            (Format::Conllu, b"1\tdogs\n", "sentence"),
        ];
        for (format, pattern, record) in formats {
            for invalid in [Invalid::Error, Invalid::Replace] {
                let (error, n_read) = error_of(pattern, format.clone(), max_line, invalid);
                let problem = format!("the {record} that begins here is longer than 5 MiB");
                assert_eq!(error, format!("`a`, line 1: {problem}"));
                assert!(n_read <= max_line + BLOCK_BYTES, "{format:?} read {n_read} bytes");
            }
        }
    }

    #[test]
    fn a_nul_byte_is_refused_as_it_arrives() {
        for format in [Format::Lines, Format::Conll] {
            let (error, n_read) = error_of(b"ab\0", format, 256 << 20, Invalid::Error);
            assert_eq!(error, "`a` is not plain text: NUL byte in line 1");
            assert!(n_read <= BLOCK_BYTES, "{n_read} bytes were read");
        }
    }

    #[test]
    fn the_limit_is_exact_whatever_the_size_of_blocks() {
        let text = format!("short\n{}\n{}", "x".repeat(99), "y".repeat(100));
        let read = |text: &str, max_line| {
            let reader = Box::new(text.as_bytes());
            let mut blocks =
                Blocks::new(reader, Format::Lines, "a".to_owned(), Invalid::Error, max_line);
            while blocks.next()?.is_some() {}
            Ok(())
        };
        assert!(read(&text, 100).is_ok());
        for (max_line, line) in [(99, 2), (5, 1)] {
            let error: ReadError = read(&text, max_line).unwrap_err();
            assert!(matches!(error, ReadError::TooLong { line: found, .. } if found == line));
        }
        let far = format!("{}{}z", "short\n".repeat(1 << 19), "z".repeat(99));
        assert!(read(&far, 100).is_ok());
        let error: ReadError = read(&far, 99).unwrap_err();
        let expected = (1 << 19) + 1;
        assert!(matches!(error, ReadError::TooLong { line, .. } if line == expected), "{error}");
    }
}
