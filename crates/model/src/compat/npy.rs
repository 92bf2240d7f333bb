//! NumPy matrices (`.npy`), and word vectors as a matrix with a separate list of words, one per line.

use super::entries::Entries;
use super::error::{MAX_DIM, VectorsError};
use super::text::without_line_breaks;
use crate::words::WordVectors;
use latens_corpus::{Lexicon, LineReader, NpyHeader, Preprocessing, Vocab};
use std::io::{self, BufRead, Read, Write};

const MAGIC: &[u8] = b"\x93NUMPY";

/// Writes the header of a row-major matrix of 32-bit floats (format version 1.0).
pub fn write_header(out: &mut dyn Write, n_rows: usize, n_cols: usize) -> io::Result<()> {
    /// Alignment of the values, in bytes.
    const ALIGNMENT: usize = 64;
    let shape = format!("({n_rows}, {n_cols})");
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    // The version and length precede the header text; a line break follows it.
    while !(MAGIC.len() + 4 + header.len() + 1).is_multiple_of(ALIGNMENT) {
        header.push(' ');
    }
    header.push('\n');
    let length = u16::try_from(header.len()).expect("the header is short");
    out.write_all(MAGIC)?;
    out.write_all(&[1, 0])?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(header.as_bytes())
}

/// Appends values to the matrix.
pub fn write_values(out: &mut dyn Write, values: &[f32]) -> io::Result<()> {
    // A call of `write_all` takes longer than the copy of a value.
    let mut buffer = [0; 4096];
    for values in values.chunks(buffer.len() / 4) {
        let bytes = &mut buffer[..4 * values.len()];
        for (bytes, value) in bytes.chunks_exact_mut(4).zip(values) {
            bytes.copy_from_slice(&value.to_le_bytes());
        }
        out.write_all(bytes)?;
    }
    Ok(())
}

/// Writes vectors as a matrix, and their words in the same order, one per line. Omits words without a vector.
pub fn write(
    vocab: &Vocab,
    vectors: &WordVectors,
    matrix: &mut dyn Write,
    words: &mut dyn Write,
) -> Result<(), VectorsError> {
    write_header(matrix, vectors.iter().count(), vectors.dim())?;
    for (id, vector) in vectors.iter() {
        let word = vocab.word(id);
        if word.contains(['\n', '\r']) {
            return Err(VectorsError::Blank { word: word.to_owned() });
        }
        writeln!(words, "{word}")?;
        write_values(matrix, vector)?;
    }
    Ok(())
}

/// Reads vectors from a row-major matrix of 32-bit or 64-bit floats, and their words, one per line.
pub fn read(
    matrix: &mut dyn BufRead,
    words: &mut dyn BufRead,
    preprocessing: &Preprocessing,
) -> Result<(Lexicon, WordVectors), VectorsError> {
    let Header { n_rows, n_cols, size } = Header::read(matrix)?;
    let mut entries = Entries::new("line", n_cols);
    let (mut lines, mut bytes) = (LineReader::new(words), vec![0; size * n_cols]);
    for number in 1..=n_rows {
        let Some(line) = lines.next_line()? else {
            return Err(wrong_number(n_rows, format!("{} words", number - 1)));
        };
        matrix.read_exact(&mut bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => wrong_number(n_rows, (number - 1).to_string()),
            _ => VectorsError::Io(error),
        })?;
        let place = entries.word(number, without_line_breaks(line))?;
        for (value, bytes) in place.iter_mut().zip(bytes.chunks_exact(size)) {
            *value = match size {
                4 => f32::from_le_bytes(bytes.try_into().expect("chunks have four bytes")),
                _ => f64::from_le_bytes(bytes.try_into().expect("chunks have eight bytes")) as f32,
            };
        }
    }
    let mut rest = Vec::new();
    words.take(1).read_to_end(&mut rest)?;
    if !rest.is_empty() {
        return Err(wrong_number(n_rows, "more words".into()));
    }
    matrix.take(1).read_to_end(&mut rest)?;
    if !rest.is_empty() {
        return Err(wrong_number(n_rows, "more".into()));
    }
    entries.finish(preprocessing)
}

fn wrong_number(expected: u64, found: String) -> VectorsError {
    VectorsError::Number { expected, found }
}

struct Header {
    n_rows: u64,
    n_cols: usize,
    /// Size of a value in bytes.
    size: usize,
}

impl Header {
    fn read(input: &mut dyn BufRead) -> Result<Header, VectorsError> {
        let NpyHeader { descr, shape, .. } =
            NpyHeader::read(&mut &mut *input).map_err(|error| match error.kind() {
                io::ErrorKind::InvalidData => wrong(error.to_string()),
                _ => VectorsError::Io(error),
            })?;
        let size = match descr.as_str() {
            "<f4" => 4,
            "<f8" => 8,
            _ => {
                return Err(wrong(format!(
                    "the element type is '{descr}', expected '<f4' or '<f8'"
                )));
            }
        };
        match shape[..] {
            [n_rows, n_cols] if (1..=MAX_DIM as u64).contains(&n_cols) => {
                Ok(Header { n_rows, n_cols: n_cols as usize, size })
            }
            [n] => Err(wrong(format!("its shape is ({n},), expected rows and columns"))),
            [_, n_cols] => Err(wrong(format!("it has {n_cols} columns, expected 1 to {MAX_DIM}"))),
            _ => {
                Err(wrong(format!("it has {} dimensions, expected rows and columns", shape.len())))
            }
        }
    }
}

fn wrong(problem: impl Into<String>) -> VectorsError {
    VectorsError::Matrix { problem: problem.into() }
}
