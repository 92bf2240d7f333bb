//! Where text comes from: files, or lines in memory. Both take the same path from there on.

use crate::error::ReadError;
use crate::input::blocks::Blocks;
use crate::input::format::Format;
use crate::input::inputs::{Inputs, Invalid, ReadWatch};
use std::io::{self, Read};
use std::iter::Peekable;

/// A sequence of texts, each cut into blocks.
pub(crate) trait Source {
    /// Opens the next text; `None` after the last.
    fn next(&mut self) -> Result<Option<Blocks<'_>>, ReadError>;

    /// The names of all texts, each in backticks, for messages.
    fn names(&self) -> String;

    /// The callback that reports progress.
    fn watch(&self) -> Option<&ReadWatch>;
}

/// The files of [`Inputs`].
pub(crate) struct Files<'a> {
    inputs: &'a Inputs,
    next_idx: usize,
}

impl<'a> Files<'a> {
    pub(crate) fn new(inputs: &'a Inputs) -> Files<'a> {
        Files { inputs, next_idx: 0 }
    }
}

impl Source for Files<'_> {
    fn next(&mut self) -> Result<Option<Blocks<'_>>, ReadError> {
        let Some(path) = self.inputs.paths.get(self.next_idx) else { return Ok(None) };
        self.next_idx += 1;
        Blocks::open(path, self.inputs).map(Some)
    }

    fn names(&self) -> String {
        let names = self.inputs.paths.iter().map(|path| format!("`{}`", path.display()));
        names.collect::<Vec<_>>().join(", ")
    }

    fn watch(&self) -> Option<&ReadWatch> {
        self.inputs.watch.as_ref()
    }
}

/// Records in memory, one per string. They form one text.
pub(crate) struct Memory<I: Iterator> {
    bytes: LineBytes<I>,
    format: Format,
    /// What messages call the records.
    name: &'static str,
    is_read: bool,
}

impl<I: Iterator<Item: AsRef<str>>> Memory<I> {
    /// Records in the format [`Format::Lines`].
    pub(crate) fn new(
        name: &'static str,
        records: impl IntoIterator<IntoIter = I, Item = I::Item>,
    ) -> Memory<I> {
        Memory::in_format(Format::Lines, name, records)
    }

    /// Records in a format with one record per line.
    pub(crate) fn in_format(
        format: Format,
        name: &'static str,
        records: impl IntoIterator<IntoIter = I, Item = I::Item>,
    ) -> Memory<I> {
        let bytes =
            LineBytes { records: records.into_iter().peekable(), buffer: Vec::new(), read: 0 };
        Memory { bytes, format, name, is_read: false }
    }
}

impl<I: Iterator<Item: AsRef<str>>> Source for Memory<I> {
    fn next(&mut self) -> Result<Option<Blocks<'_>>, ReadError> {
        if self.is_read || self.bytes.records.peek().is_none() {
            return Ok(None);
        }
        self.is_read = true;
        let name = self.name.to_owned();
        let reader = Box::new(&mut self.bytes);
        Ok(Some(Blocks::new(reader, self.format.clone(), name, Invalid::Error, usize::MAX)))
    }

    fn names(&self) -> String {
        format!("`{}`", self.name)
    }

    fn watch(&self) -> Option<&ReadWatch> {
        None
    }
}

/// Strings as the bytes of a file with one string per line.
struct LineBytes<I: Iterator> {
    records: Peekable<I>,
    buffer: Vec<u8>,
    /// Number of bytes of `buffer` that have been read.
    read: usize,
}

const BUFFER_BYTES: usize = 1 << 16;

impl<I: Iterator<Item: AsRef<str>>> LineBytes<I> {
    fn refill(&mut self) {
        self.buffer.clear();
        self.read = 0;
        while self.buffer.len() < BUFFER_BYTES {
            let Some(record) = self.records.next() else { return };
            let begin = self.buffer.len();
            self.buffer.extend_from_slice(record.as_ref().as_bytes());
            // A line break inside a record is whitespace; it must not end the record.
            self.buffer[begin..].iter_mut().filter(|b| **b == b'\n').for_each(|b| *b = b' ');
            self.buffer.push(b'\n');
        }
    }
}

impl<I: Iterator<Item: AsRef<str>>> Read for LineBytes<I> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.read == self.buffer.len() {
            self.refill();
        }
        let n_read = (&self.buffer[self.read..]).read(out)?;
        self.read += n_read;
        Ok(n_read)
    }
}
