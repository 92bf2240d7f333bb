//! The byte layout of the file and its two checksums.

use super::element::{Element, ElementType};
use super::error::FileError;
use super::header::Header;
use latens_store::FlatArray;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// The beginning of the JSON of every latens file. The digits of the header checksum follow at a
/// fixed position, so that they can be verified before any JSON is parsed.
const MAGIC: &str = r#"{"__metadata__":{"format":"latens","header_checksum":""#;
const ZEROS: &str = "0000000000000000";
const N_LENGTH: usize = size_of::<u64>();
const DIGITS: Range<usize> = N_LENGTH + MAGIC.len()..N_LENGTH + MAGIC.len() + ZEROS.len();
/// Alignment of the first array in bytes: the width of the widest vector register.
const ALIGNMENT: usize = 64;
/// Maximum length of the JSON in bytes. Headers have a few kilobytes; the limit protects against
/// malicious files.
const MAX_HEADER: usize = 16 << 20;

/// An array to be written.
pub(crate) struct ArrayEntry<'a> {
    pub(crate) name: String,
    pub(crate) dtype: ElementType,
    pub(crate) shape: Vec<usize>,
    pub(crate) bytes: Content<'a>,
}

/// The bytes of an array: contiguous, or in separate rows.
pub(crate) enum Content<'a> {
    Piece(Cow<'a, [u8]>),
    Rows(&'a dyn ByteRows),
    Owned(Box<dyn ByteRows>),
}

/// Rows of bytes that need not be contiguous.
pub(crate) trait ByteRows: Send + Sync {
    fn n_rows(&self) -> usize;

    fn row(&self, row: usize) -> &[u8];

    /// Called when a row was used and is not needed for now.
    fn release(&self, _row: usize) {}
}

/// An array that may be in a mapped file, in parts that leave memory after use.
pub(crate) struct Parts<T>(pub(crate) Vec<FlatArray<T>>);

/// Bytes per part.
const PART: usize = 16 << 20;

impl<T: Element> Parts<T> {
    pub(crate) fn of(values: &FlatArray<T>) -> Parts<T> {
        let n = PART / size_of::<T>();
        let begins = (0..values.len()).step_by(n);
        Parts(begins.map(|begin| values.slice(begin..(begin + n).min(values.len()))).collect())
    }
}

impl<T: Element> ByteRows for Parts<T> {
    fn n_rows(&self) -> usize {
        self.0.len()
    }

    fn row(&self, row: usize) -> &[u8] {
        bytemuck::cast_slice(&self.0[row])
    }

    fn release(&self, row: usize) {
        self.0[row].release();
    }
}

/// An array in one piece, as bytes.
pub(crate) struct Whole<V>(pub(crate) V);

impl<T: Element> ByteRows for Whole<Vec<T>> {
    fn n_rows(&self) -> usize {
        1
    }

    fn row(&self, _: usize) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

impl<T: Element> ByteRows for Whole<Arc<Vec<T>>> {
    fn n_rows(&self) -> usize {
        1
    }

    fn row(&self, _: usize) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

impl Content<'_> {
    fn len(&self) -> usize {
        self.pieces().map(<[u8]>::len).sum()
    }

    /// Calls `visit` with all bytes, in order.
    fn visit(&self, mut visit: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let rows: &dyn ByteRows = match self {
            Content::Piece(bytes) => return visit(bytes),
            Content::Rows(rows) => *rows,
            Content::Owned(rows) => &**rows,
        };
        (0..rows.n_rows()).try_for_each(|row| {
            let visited = visit(rows.row(row));
            rows.release(row);
            visited
        })
    }

    fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let (piece, rows): (_, Option<&dyn ByteRows>) = match self {
            Content::Piece(bytes) => (Some(&**bytes), None),
            Content::Rows(rows) => (None, Some(*rows)),
            Content::Owned(rows) => (None, Some(&**rows)),
        };
        let rows = rows.into_iter().flat_map(|rows| (0..rows.n_rows()).map(|i| rows.row(i)));
        piece.into_iter().chain(rows)
    }
}

impl<'a> ArrayEntry<'a> {
    /// # Panics
    /// If the number of values does not match the shape, or the name is reserved.
    pub(crate) fn new<T: Element>(name: &str, shape: &[usize], bytes: Content<'a>) -> Self {
        assert!(name != "__metadata__", "the array name `{name}` is reserved");
        let n_values = bytes.len() / size_of::<T>();
        let room = shape.iter().try_fold(1usize, |n, &length| n.checked_mul(length));
        assert!(room == Some(n_values), "`{name}` of shape {shape:?} has {n_values} values");
        ArrayEntry { name: name.to_owned(), dtype: T::DTYPE, shape: shape.to_vec(), bytes }
    }
}

/// Writes the header and the arrays. Arrays are read twice and never copied.
pub(crate) fn write_sealed(
    out: &mut dyn Write,
    header: &Header,
    arrays: &[ArrayEntry<'_>],
) -> io::Result<()> {
    let mut arrays: Vec<&ArrayEntry> = arrays.iter().collect();
    // Each length is a multiple of its alignment, and so of every smaller one. In this order, every
    // array is aligned without gaps, which safetensors forbids.
    arrays.sort_by_key(|array| Reverse(array.dtype.to_safetensors().bitsize()));
    let mut data_checksum = Xxh3::new();
    for array in &arrays {
        array.bytes.visit(|bytes| {
            data_checksum.update(bytes);
            Ok(())
        })?;
    }
    out.write_all(&seal(json(header, &arrays, data_checksum.digest())?)?)?;
    arrays.iter().try_for_each(|array| array.bytes.visit(|bytes| out.write_all(bytes)))
}

fn json(header: &Header, arrays: &[&ArrayEntry], data_checksum: u64) -> io::Result<String> {
    let header = quoted(&serde_json::to_string(header)?)?;
    let data_checksum = hex(data_checksum);
    let mut json =
        format!(r#"{MAGIC}{ZEROS}","data_checksum":"{data_checksum}","latens":{header}}}"#);
    let mut begin = 0;
    for array in arrays {
        let ArrayEntry { name, dtype, shape, bytes } = array;
        let (name, end) = (quoted(name)?, begin + bytes.len());
        write!(
            json,
            r#",{name}:{{"dtype":"{dtype}","shape":{shape:?},"data_offsets":[{begin},{end}]}}"#
        )
        .expect("writing to a string cannot fail");
        begin = end;
    }
    json.push('}');
    Ok(json)
}

fn quoted(text: &str) -> io::Result<String> {
    Ok(serde_json::to_string(text)?)
}

/// The first part of the file: the length and the padded JSON, with the checksum of both in place
/// of its zeros.
pub(super) fn seal(mut json: String) -> io::Result<Vec<u8>> {
    let end = (N_LENGTH + json.len()).next_multiple_of(ALIGNMENT);
    json.extend(std::iter::repeat_n(' ', end - N_LENGTH - json.len()));
    if json.len() > MAX_HEADER {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the header is too long"));
    }
    let mut sealed = (json.len() as u64).to_le_bytes().to_vec();
    sealed.extend_from_slice(json.as_bytes());
    let checksum = hex(xxh3_64(&sealed));
    sealed[DIGITS].copy_from_slice(checksum.as_bytes());
    Ok(sealed)
}

/// Verifies and returns the JSON of the file in `bytes`. The arrays begin where it ends.
pub(super) fn unseal<'a>(bytes: &'a [u8], path: &Path) -> Result<&'a [u8], FileError> {
    let corrupt = |problem| FileError::Corrupt { path: path.to_owned(), problem };
    let begin = bytes.get(N_LENGTH..).unwrap_or_default();
    let n_magic = begin.len().min(MAGIC.len());
    if n_magic == 0 || begin[..n_magic] != MAGIC.as_bytes()[..n_magic] {
        return Err(FileError::NotLatens { path: path.to_owned(), found: looks_like(bytes) });
    }
    let length = json_length(bytes).unwrap_or(u64::MAX);
    if length > MAX_HEADER as u64 {
        return Err(corrupt("the header has an invalid length"));
    }
    let end = N_LENGTH + length as usize;
    if end > bytes.len() {
        let (expected, found) = (end as u64, bytes.len() as u64);
        return Err(FileError::Truncated { path: path.to_owned(), expected, found });
    }
    if end < DIGITS.end || bytes[DIGITS] != *header_checksum(&bytes[..end]).as_bytes() {
        return Err(corrupt("the checksum of its header does not match"));
    }
    Ok(&bytes[N_LENGTH..end])
}

/// The header checksum as text. A digit in another case counts as damage, too.
fn header_checksum(sealed: &[u8]) -> String {
    let mut checksum = Xxh3::new();
    checksum.update(&sealed[..DIGITS.start]);
    checksum.update(ZEROS.as_bytes());
    checksum.update(&sealed[DIGITS.end..]);
    hex(checksum.digest())
}

/// Checks the data checksum.
pub(super) fn check_data(data: &[u8], checksum: &str, path: &Path) -> Result<(), FileError> {
    if hex(xxh3_64(data)) == checksum {
        return Ok(());
    }
    let problem = "the checksum of its arrays does not match";
    Err(FileError::Corrupt { path: path.to_owned(), problem })
}

fn hex(checksum: u64) -> String {
    format!("{checksum:016x}")
}

fn json_length(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk().map(|&length| u64::from_le_bytes(length))
}

/// Guesses what a file of another format is, for the error message.
fn looks_like(bytes: &[u8]) -> &'static str {
    let rest = bytes.len().saturating_sub(N_LENGTH) as u64;
    let start = &bytes[..bytes.len().min(1024)];
    // A character may be split at the end of the sample.
    let is_text = match std::str::from_utf8(start) {
        Ok(text) => !text.contains('\0'),
        Err(error) => error.error_len().is_none(),
    };
    if bytes.is_empty() {
        "it is empty"
    } else if bytes.starts_with(b"latens\x1A\n") {
        "it holds encoded text or counts"
    } else if bytes.get(N_LENGTH) == Some(&b'{') && json_length(bytes).is_some_and(|n| n <= rest) {
        "it is a safetensors file from another program"
    } else if is_text {
        "it is a text file"
    } else {
        "the file type is unknown"
    }
}
