//! NumPy matrices (`.npy`), and word vectors as a matrix with a separate list of words, one per line.

use super::entries::Entries;
use super::error::{MAX_DIM, VectorsError};
use super::text::without_line_breaks;
use crate::words::WordVectors;
use latens_corpus::{Lexicon, LineReader, Preprocessing, Vocab};
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
    values.iter().try_for_each(|value| out.write_all(&value.to_le_bytes()))
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
        let text = Header::read_text(input).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => wrong("it is not a `.npy` file"),
            _ => VectorsError::Io(error),
        })?;
        let text = text.ok_or_else(|| wrong("it is not a `.npy` file"))?;
        let size = match value(&text, "descr")? {
            "'<f4'" => 4,
            "'<f8'" => 8,
            other => {
                return Err(wrong(format!("the element type is {other}, expected '<f4' or '<f8'")));
            }
        };
        if value(&text, "fortran_order")? != "False" {
            return Err(wrong("it is column-major; convert it with `numpy.ascontiguousarray`"));
        }
        let shape = value(&text, "shape")?;
        let numbers = shape.trim_matches(['(', ')']).split(',').map(|number| number.trim().parse());
        let numbers: Vec<Option<u64>> = numbers.map(Result::ok).collect();
        match numbers[..] {
            [Some(n_rows), Some(n_cols)] if (1..=MAX_DIM as u64).contains(&n_cols) => {
                Ok(Header { n_rows, n_cols: n_cols as usize, size })
            }
            _ => Err(wrong(format!("its shape is {shape}, expected rows and columns"))),
        }
    }

    /// Reads the header text. Returns `None` if the file is not a `.npy` file.
    fn read_text(input: &mut dyn BufRead) -> io::Result<Option<String>> {
        let mut start = [0; 8];
        input.read_exact(&mut start)?;
        let length = match (&start[..6], start[6]) {
            (MAGIC, 1) => {
                let mut length = [0; 2];
                input.read_exact(&mut length)?;
                u64::from(u16::from_le_bytes(length))
            }
            (MAGIC, 2 | 3) => {
                let mut length = [0; 4];
                input.read_exact(&mut length)?;
                u64::from(u32::from_le_bytes(length))
            }
            _ => return Ok(None),
        };
        let mut text = Vec::new();
        input.take(length.min(1 << 16)).read_to_end(&mut text)?;
        Ok(String::from_utf8(text).ok())
    }
}

fn wrong(problem: impl Into<String>) -> VectorsError {
    VectorsError::Matrix { problem: problem.into() }
}

/// The value of `name` in the header, up to the next comma or the closing bracket of a shape.
fn value<'a>(header: &'a str, name: &str) -> Result<&'a str, VectorsError> {
    let missing = || wrong(format!("its header has no `{name}`"));
    let (_, rest) = header.split_once(&format!("'{name}':")).ok_or_else(missing)?;
    let rest = rest.trim_start();
    let end = match rest.starts_with('(') {
        true => rest.find(')').map(|end| end + 1),
        false => rest.find([',', '}']),
    };
    Ok(rest[..end.ok_or_else(missing)?].trim())
}
