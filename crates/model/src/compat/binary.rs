use super::entries::Entries;
use super::error::VectorsError;
use super::text::parse_header;
use crate::words::WordVectors;
use latens_corpus::{Lexicon, Preprocessing, Vocab};
use std::io::{self, BufRead, Read, Write};

/// Maximum length of a header or word, in bytes.
const MAX_WORD: u64 = 1 << 16;

/// Reads the binary format of word2vec: the number of words and the dimension as text, then for each word its UTF-8
/// text, a space, and its values as little-endian 32-bit floats. Line breaks before a word are skipped, because some
/// programs write one after each vector.
pub fn read_binary(
    input: &mut dyn BufRead,
    preprocessing: &Preprocessing,
) -> Result<(Lexicon, WordVectors), VectorsError> {
    let mut word = Vec::new();
    read_until(input, b'\n', &mut word)?;
    let (n_words, dim) = parse_header(&word)?;
    let (mut entries, mut bytes) = (Entries::new("vector", dim), vec![0; 4 * dim]);
    for number in 1..=n_words {
        let found = || VectorsError::Number { expected: n_words, found: (number - 1).to_string() };
        read_until(input, b' ', &mut word)?;
        if word.pop() != Some(b' ') {
            let is_end = word.len() as u64 + 1 < MAX_WORD;
            let problem = "the word is too long";
            return Err(if is_end { found() } else { entries.error(number, problem) });
        }
        read_numbers(input, &mut bytes, found)?;
        let begin = word.iter().take_while(|&&byte| byte == b'\n' || byte == b'\r').count();
        let place = entries.word(number, &word[begin..])?;
        for (value, bytes) in place.iter_mut().zip(bytes.chunks_exact(4)) {
            *value = f32::from_le_bytes(bytes.try_into().expect("chunks have four bytes"));
        }
    }
    expect_end(input, n_words)?;
    entries.finish(preprocessing)
}

fn read_until(input: &mut dyn BufRead, end: u8, out: &mut Vec<u8>) -> io::Result<()> {
    out.clear();
    input.take(MAX_WORD).read_until(end, out).map(drop)
}

fn read_numbers(
    input: &mut dyn BufRead,
    bytes: &mut [u8],
    cut_short: impl Fn() -> VectorsError,
) -> Result<(), VectorsError> {
    input.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => cut_short(),
        _ => VectorsError::Io(error),
    })
}

/// Checks that at most a line break follows the last vector.
fn expect_end(input: &mut dyn BufRead, expected: u64) -> Result<(), VectorsError> {
    let mut rest = Vec::new();
    input.take(2).read_to_end(&mut rest)?;
    if rest.iter().all(|&byte| byte == b'\n' || byte == b'\r') {
        return Ok(());
    }
    Err(VectorsError::Number { expected, found: "more".into() })
}

/// Writes the format of [`read_binary`], with a line break after each vector. Omits words without a vector.
pub fn write_binary(
    vocab: &Vocab,
    vectors: &WordVectors,
    out: &mut dyn Write,
) -> Result<(), VectorsError> {
    writeln!(out, "{} {}", vectors.iter().count(), vectors.dim())?;
    for (id, vector) in vectors.iter() {
        let word = vocab.word(id);
        if word.contains([' ', '\t', '\n', '\r']) {
            return Err(VectorsError::Blank { word: word.to_owned() });
        }
        write!(out, "{word} ")?;
        vector.iter().try_for_each(|value| out.write_all(&value.to_le_bytes()))?;
        writeln!(out)?;
    }
    Ok(())
}
