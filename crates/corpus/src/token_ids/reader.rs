//! Arrays of token ids as text: one JSON object with the names of the tokens per line.

use super::items::{Item, Items};
use super::names::{Token, TokenNames};
use super::npy::{NpyHeader, invalid};
use super::npz;
use crate::compression::open_input;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// Bytes of an array that are read at a time.
const CHUNK: usize = 1 << 16;

/// Reads the sequences of all arrays of a file.
///
/// A sequence ends with the end token, and with the row of an array. Negative ids and special tokens are skipped, and so are
/// empty sequences.
pub(crate) struct IdsReader {
    /// Arrays that have not been opened yet, in reverse order.
    arrays: Vec<npz::Open>,
    array: Option<Box<dyn Items>>,
    names: TokenNames,
    max_line: usize,
    line: Vec<u8>,
    n_given: usize,
}

impl IdsReader {
    /// Opens a `.npy`, `.npz` or `.arrow` file. Lines much longer than `max_line` are cut off.
    pub(crate) fn open(path: &Path, names: TokenNames, max_line: usize) -> io::Result<IdsReader> {
        let (mut arrays, mut array) = (Vec::new(), None);
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        if name.ends_with(".npz") {
            arrays = npz::arrays(path)?;
        } else if name.trim_end_matches(".gz").trim_end_matches(".zst").ends_with(".arrow") {
            array = Some(arrow_ids(open_input(path)?)?);
        } else {
            let bytes = open_input(path)?;
            arrays.push(Box::new(|| Ok(bytes)));
        }
        arrays.reverse();
        Ok(IdsReader { arrays, array, names, max_line, line: vec![], n_given: 0 })
    }

    /// Writes the next sequence to `line`. Leaves it empty at the end.
    fn next_line(&mut self) -> io::Result<()> {
        self.line.clear();
        loop {
            let Some(array) = &mut self.array else {
                let Some(open) = self.arrays.pop() else { return Ok(()) };
                self.array = Some(Box::new(Ids::open(open()?)?));
                continue;
            };
            let is_full = self.line.len() > self.max_line;
            match array.next()? {
                None => self.array = None,
                Some(Item::EndOfRow) => {}
                Some(Item::Id(id)) => match self.add(id)? {
                    Added::End => {}
                    Added::Token if !is_full => continue,
                    // The caller reports the line.
                    Added::Token => return Ok(()),
                },
            }
            if !self.line.is_empty() {
                self.line.extend_from_slice(b"]}\n");
                return Ok(());
            }
        }
    }

    /// Adds the token of an id to the line.
    fn add(&mut self, id: i64) -> io::Result<Added> {
        if id < 0 {
            return Ok(Added::Token);
        }
        let unknown = || invalid(format!("the tokenizer has no token with the id {id}"));
        let id = u32::try_from(id).map_err(|_| unknown())?;
        if self.names.is_end(id) {
            return Ok(Added::End);
        }
        let Token::Word(word) = self.names.get(id).ok_or_else(unknown)? else {
            return Ok(Added::Token);
        };
        let before: &[u8] = if self.line.is_empty() { b"{\"text\":[" } else { b"," };
        self.line.extend_from_slice(before);
        serde_json::to_writer(&mut self.line, word).map_err(io::Error::from)?;
        Ok(Added::Token)
    }
}

enum Added {
    Token,
    End,
}

impl Read for IdsReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.n_given == self.line.len() {
            self.n_given = 0;
            self.next_line()?;
        }
        let n = out.len().min(self.line.len() - self.n_given);
        out[..n].copy_from_slice(&self.line[self.n_given..self.n_given + n]);
        self.n_given += n;
        Ok(n)
    }
}

#[cfg(feature = "arrow")]
fn arrow_ids(input: Box<dyn Read + Send>) -> io::Result<Box<dyn Items>> {
    Ok(Box::new(super::arrow::ArrowIds::open(input)?))
}

#[cfg(not(feature = "arrow"))]
fn arrow_ids(_: Box<dyn Read + Send>) -> io::Result<Box<dyn Items>> {
    Err(invalid("Arrow files need a build with the feature `arrow`"))
}

/// The elements of an array of integers.
struct Ids {
    input: BufReader<Box<dyn Read + Send>>,
    decode: fn(&[u8]) -> i64,
    size: usize,
    n_columns: u64,
    n_left: u64,
    /// Elements of the current row that are left.
    n_left_in_row: u64,
}

impl Ids {
    fn open(mut input: Box<dyn Read + Send>) -> io::Result<Ids> {
        let NpyHeader { descr, shape } = NpyHeader::read(&mut input)?;
        let (decode, size): (fn(&[u8]) -> i64, usize) = match descr.as_str() {
            "|u1" => (|bytes| i64::from(bytes[0]), 1),
            "|i1" => (|bytes| i64::from(bytes[0].cast_signed()), 1),
            "<u2" => (|bytes| i64::from(u16::from_le_bytes(array(bytes))), 2),
            "<i2" => (|bytes| i64::from(i16::from_le_bytes(array(bytes))), 2),
            "<u4" => (|bytes| i64::from(u32::from_le_bytes(array(bytes))), 4),
            "<i4" => (|bytes| i64::from(i32::from_le_bytes(array(bytes))), 4),
            // A huge number stays one: no tokenizer has it.
            "<u8" => {
                (|bytes| i64::try_from(u64::from_le_bytes(array(bytes))).unwrap_or(i64::MAX), 8)
            }
            "<i8" => (|bytes| i64::from_le_bytes(array(bytes)), 8),
            _ => {
                let problem =
                    format!("its elements are `{descr}`, expected little-endian integers");
                return Err(invalid(problem));
            }
        };
        let (n_rows, n_columns) = match shape[..] {
            [n] => (1, n),
            [n_rows, n_columns] => (n_rows, n_columns),
            _ => {
                return Err(invalid(format!("it has {} dimensions, expected 1 or 2", shape.len())));
            }
        };
        let n_left =
            n_rows.checked_mul(n_columns).ok_or_else(|| invalid("its shape is too large"))?;
        let input = BufReader::with_capacity(CHUNK, input);
        Ok(Ids { input, decode, size, n_columns, n_left, n_left_in_row: n_columns })
    }
}

impl Items for Ids {
    fn next(&mut self) -> io::Result<Option<Item>> {
        if self.n_left == 0 {
            return Ok(None);
        }
        if self.n_left_in_row == 0 {
            self.n_left_in_row = self.n_columns;
            return Ok(Some(Item::EndOfRow));
        }
        let mut bytes = [0; 8];
        self.input.read_exact(&mut bytes[..self.size]).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => invalid("it is truncated"),
            _ => error,
        })?;
        (self.n_left, self.n_left_in_row) = (self.n_left - 1, self.n_left_in_row - 1);
        Ok(Some(Item::Id((self.decode)(&bytes[..self.size]))))
    }
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("as many bytes as the type has")
}
