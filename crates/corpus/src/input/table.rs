//! Tables with a header: CSV (RFC 4180) and its variant with tabs.

use crate::error::ReadError;
use crate::input::columns::{Columns, Places};
use crate::input::inputs::Invalid;
use crate::input::rows::{BLOCK_BYTES, Row, text_of};
use csv::ByteRecord;
use std::io::{self, Read};

const BUFFER_BYTES: usize = 1 << 16;

/// Reads the rows of one table.
pub(crate) struct Table<'a> {
    reader: csv::Reader<Limited<Box<dyn Read + 'a>>>,
    places: Places,
    n_columns: usize,
    file: String,
    invalid: Invalid,
    max_line: usize,
    record: ByteRecord,
}

impl<'a> Table<'a> {
    /// Reads the header of a table and finds the columns in it.
    pub(crate) fn open(
        input: Box<dyn Read + 'a>,
        delimiter: u8,
        columns: &Columns,
        file: String,
        invalid: Invalid,
        max_line: usize,
    ) -> Result<Table<'a>, ReadError> {
        let mut builder = csv::ReaderBuilder::new();
        builder
            .delimiter(delimiter)
            .has_headers(false)
            .flexible(true)
            .buffer_capacity(BUFFER_BYTES);
        let reader = builder.from_reader(Limited { input, left: 0 });
        let (places, n_columns) = (Places { text: 0, id: None, label: None, kept: Vec::new() }, 0);
        let record = ByteRecord::new();
        let mut table = Table { reader, places, n_columns, file, invalid, max_line, record };
        if !table.advance()? {
            return Err(ReadError::Empty { file: table.file });
        }
        let header = (0..table.record.len()).map(|idx| table.field(idx, 1));
        let mut header: Vec<String> = header.collect::<Result<_, _>>()?;
        // Some programs write a byte-order mark.
        if let Some(name) = header[0].strip_prefix('\u{feff}') {
            header[0] = name.to_owned();
        }
        let places = Places::find(columns, &header);
        table.places = places.map_err(|problem| table.problem(1, problem))?;
        table.n_columns = header.len();
        Ok(table)
    }

    /// Reads about one block of rows; none at the end.
    pub(crate) fn rows(&mut self) -> Result<(Vec<Row>, usize), ReadError> {
        let (mut rows, mut n_bytes) = (Vec::new(), 0);
        while n_bytes < BLOCK_BYTES && self.advance()? {
            let line = self.record.position().map_or(0, csv::Position::line);
            if self.record.len() != self.n_columns {
                let (found, wanted) = (self.record.len(), self.n_columns);
                let problem = format!("expected {wanted} columns, found {found}");
                return Err(self.problem(line, problem));
            }
            n_bytes += self.record.as_slice().len() + self.record.len();
            let Places { text, id, label, kept } = &self.places;
            let optional = |idx: &Option<usize>| match idx {
                Some(idx) => self.field(*idx, line),
                None => Ok(String::new()),
            };
            rows.push(Row {
                text: self.field(*text, line)?,
                id: optional(id)?,
                label: optional(label)?,
                kept: kept.iter().map(|&idx| self.field(idx, line)).collect::<Result<_, _>>()?,
                line,
            });
        }
        Ok((rows, n_bytes))
    }

    /// Reads the next record. Returns whether there was one.
    fn advance(&mut self) -> Result<bool, ReadError> {
        // What the reader holds in its buffer may belong to later rows.
        self.reader.get_mut().left = self.max_line.saturating_add(BUFFER_BYTES);
        let line = self.reader.position().line();
        self.reader.read_byte_record(&mut self.record).map_err(|error| {
            let file = self.file.clone();
            match error.into_kind() {
                csv::ErrorKind::Io(source) if source.kind() == io::ErrorKind::FileTooLarge => {
                    ReadError::TooLong { file, line, record: "row", limit: self.max_line }
                }
                csv::ErrorKind::Io(source) => ReadError::Io { file, source },
                other => ReadError::Line { file, line, problem: format!("{other:?}") },
            }
        })
    }

    fn field(&self, idx: usize, line: u64) -> Result<String, ReadError> {
        let bytes = self.record.get(idx).unwrap_or_default();
        text_of(bytes.to_vec(), &self.file, line, self.invalid)
    }

    fn problem(&self, line: u64, problem: String) -> ReadError {
        ReadError::Line { file: self.file.clone(), line, problem }
    }
}

/// A reader that fails where a row is too long: a quote that is never closed must not exhaust memory.
struct Limited<R> {
    input: R,
    /// Number of bytes that may be read before the next row begins.
    left: usize,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n_read = self.input.read(out)?;
        self.left = self.left.checked_sub(n_read).ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(n_read)
    }
}
