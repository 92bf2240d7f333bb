//! Text cut into blocks of whole records that threads can share.

use crate::error::ReadError;
use crate::input::compression::open_input;
use crate::input::format::Format;
use crate::input::inputs::{Inputs, Invalid};
use memchr::{memchr, memchr_iter};
use std::borrow::Cow;
use std::io::Read;
use std::path::Path;

/// Approximate size of a block in bytes: large enough to keep a thread busy for milliseconds, small
/// enough that a few blocks per thread fit in the cache.
const BLOCK_BYTES: usize = 1 << 20;

/// Iterator over the blocks of one text.
pub(crate) struct Blocks<'a> {
    reader: Box<dyn Read + 'a>,
    format: Format,
    file: String,
    invalid: Invalid,
    /// Bytes read that belong to the next block.
    rest: Vec<u8>,
    /// First line of the next block.
    line: u64,
    at_start: bool,
}

/// Some whole records of one text.
pub(crate) struct Block {
    bytes: Vec<u8>,
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
    ) -> Blocks<'a> {
        Blocks { reader, format, file, invalid, rest: Vec::new(), line: 1, at_start: true }
    }

    /// Opens a file.
    pub(crate) fn open(path: &Path, inputs: &Inputs) -> Result<Blocks<'a>, ReadError> {
        let file = path.display().to_string();
        let format = inputs.format.clone().unwrap_or_else(|| Format::of_path(path));
        match open_input(path) {
            Ok(reader) => Ok(Blocks::new(reader, format, file, inputs.invalid)),
            Err(source) => Err(ReadError::Io { file, source }),
        }
    }

    /// Reads the next block; `None` at the end of the text.
    pub(crate) fn next(&mut self) -> Result<Option<Block>, ReadError> {
        let mut bytes = std::mem::take(&mut self.rest);
        let cut = loop {
            let wanted = BLOCK_BYTES.max(bytes.len());
            let searched = bytes.len();
            let read = (&mut self.reader).take(wanted as u64).read_to_end(&mut bytes);
            let n_read =
                read.map_err(|source| ReadError::Io { file: self.file.clone(), source })?;
            if self.at_start {
                self.start(&mut bytes)?;
            }
            if n_read < wanted {
                break bytes.len();
            }
            if let Some(end) = self.format.last_record_end(&bytes, searched) {
                break end;
            }
        };
        self.rest = bytes.split_off(cut);
        if bytes.is_empty() {
            return Ok(None);
        }
        let first_line = self.line;
        self.line += memchr_iter(b'\n', &bytes).count() as u64;
        let (file, format) = (self.file.clone(), self.format.clone());
        Ok(Some(Block { bytes, file, format, first_line, invalid: self.invalid }))
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

impl Block {
    /// Number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
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
        if let Some(at) = memchr(0, &self.bytes) {
            return Err(ReadError::Nul { file: self.file.clone(), line: self.line_at(at) });
        }
        std::str::from_utf8(&self.bytes).map(Cow::Borrowed).map_err(|error| ReadError::NotUtf8 {
            file: self.file.clone(),
            line: self.line_at(error.valid_up_to()),
        })
    }

    fn line_at(&self, byte: usize) -> u64 {
        self.first_line + memchr_iter(b'\n', &self.bytes[..byte]).count() as u64
    }
}
