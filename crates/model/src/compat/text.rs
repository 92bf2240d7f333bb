use super::entries::Entries;
use super::error::{MAX_DIM, VectorsError};
use crate::words::WordVectors;
use latens_corpus::{Lexicon, LineReader, Preprocessing, Vocab};
use std::io::{BufRead, Write};

/// A text format of word vectors, with one word and its values per line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// The format of word2vec and fastText (`.vec`): the first line has the number of words and the dimension.
    Word2vec,
    /// The format of GloVe: no header line.
    Glove,
}

/// Maximum length of a line, in bytes.
const MAX_LINE: usize = 1 << 24;

/// Reads vectors in a text format.
///
/// Values may be separated by several spaces, and lines may end with spaces. Words may contain spaces, as some of
/// GloVe's do, because the vector is at the end of the line.
pub fn read_text(
    input: &mut dyn BufRead,
    format: TextFormat,
    preprocessing: &Preprocessing,
) -> Result<(Lexicon, WordVectors), VectorsError> {
    let mut lines = LineReader::new(input).max_line(MAX_LINE);
    let header = match format {
        TextFormat::Word2vec => Some(read_header(&mut lines)?),
        TextFormat::Glove => None,
    };
    let mut entries: Option<Entries> = None;
    loop {
        let number = lines.number() + 1;
        let Some(line) = lines.next_line()? else { break };
        // Skip empty lines: some programs end their files with one.
        if line.trim_ascii().is_empty() {
            continue;
        }
        let line = without_line_breaks(line);
        let dim = header.map_or_else(|| fields(line).count().saturating_sub(1), |(_, dim)| dim);
        let entries = entries.get_or_insert_with(|| Entries::new("line", dim));
        read_line(line, number, entries)?;
        if let Some((n_words, _)) = header
            && entries.len() > n_words
        {
            return Err(VectorsError::Number { expected: n_words, found: "more".into() });
        }
    }
    let entries = entries.ok_or(VectorsError::Empty)?;
    match header {
        Some((expected, _)) if expected != entries.len() => {
            Err(VectorsError::Number { expected, found: entries.len().to_string() })
        }
        _ => entries.finish(preprocessing),
    }
}

/// Parses the header line into the number of words and the dimension.
pub(super) fn parse_header(line: &[u8]) -> Result<(u64, usize), VectorsError> {
    let text = String::from_utf8_lossy(line);
    let mut numbers = text.split_ascii_whitespace();
    let (words, dim, rest) = (numbers.next(), numbers.next(), numbers.next());
    let words = words.and_then(|number| number.parse().ok());
    let dim = dim.and_then(|number| number.parse().ok()).filter(|dim| (1..=MAX_DIM).contains(dim));
    match (words, dim, rest) {
        (Some(words), Some(dim), None) => Ok((words, dim)),
        _ => Err(VectorsError::NoHeader { found: text.trim().chars().take(40).collect() }),
    }
}

fn read_header(lines: &mut LineReader<'_>) -> Result<(u64, usize), VectorsError> {
    parse_header(lines.next_line()?.ok_or(VectorsError::Empty)?)
}

/// The line without the line breaks of all systems at its end.
pub(super) fn without_line_breaks(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|byte| !b"\r\n".contains(byte)).map_or(0, |last| last + 1);
    &line[..end]
}

fn read_line(line: &[u8], number: u64, entries: &mut Entries) -> Result<(), VectorsError> {
    let dim = entries.dim();
    let problem = |entries: &Entries, problem: String| Err(entries.error(number, problem));
    if !(1..=MAX_DIM).contains(&dim) {
        return problem(entries, format!("expected a word and its values, found {dim} values"));
    }
    let n_fields = fields(line).count();
    // The vector is at the end of the line; everything before it is the word.
    let Some(first) = fields(line).rev().nth(dim - 1).filter(|_| n_fields > dim) else {
        let found = n_fields.saturating_sub(1);
        return problem(entries, format!("{dim} numbers expected after the word, found {found}"));
    };
    let word = line[..offset(line, first)].trim_ascii();
    let last = fields(word).next_back().unwrap_or_default();
    if n_fields > dim + 1 && parse(last).is_some() {
        let found = n_fields - 1;
        return problem(entries, format!("{dim} numbers expected after the word, found {found}"));
    }
    let numbers = fields(&line[offset(line, first)..]);
    let mut place = entries.word(number, word)?.iter_mut();
    for text in numbers {
        let place = place.next().expect("there are `dim` fields");
        let Some(value) = parse(text) else {
            let text = String::from_utf8_lossy(text).into_owned();
            return problem(entries, format!("`{text}` is not a number"));
        };
        *place = value;
    }
    Ok(())
}

fn parse(text: &[u8]) -> Option<f32> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The fields between spaces and tabs. Other whitespace may be part of a word.
fn fields(line: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    line.split(|&byte| byte == b' ' || byte == b'\t').filter(|field| !field.is_empty())
}

/// Offset of a subslice in its line.
fn offset(line: &[u8], part: &[u8]) -> usize {
    part.as_ptr().addr() - line.as_ptr().addr()
}

/// Whether a word with spaces can be distinguished from the numbers after it.
fn can_be_read(word: &str) -> bool {
    let last = fields(word.as_bytes()).next_back().unwrap_or_default();
    word.trim_ascii() == word && parse(last).is_none()
}

/// Writes vectors such that reading restores every bit. Omits words without a vector.
///
/// The first line of the format of GloVe tells readers the dimension, so its word is one without spaces.
pub fn write_text(
    vocab: &Vocab,
    vectors: &WordVectors,
    format: TextFormat,
    out: &mut dyn Write,
) -> Result<(), VectorsError> {
    if format == TextFormat::Word2vec {
        writeln!(out, "{} {}", vectors.iter().count(), vectors.dim())?;
    }
    let has_blank = |word: &str| word.contains([' ', '\t']);
    let mut found: Vec<_> = vectors.iter().collect();
    if format == TextFormat::Glove {
        let first = found.iter().position(|&(id, _)| !has_blank(vocab.word(id))).unwrap_or(0);
        if !found.is_empty() {
            found[..=first].rotate_right(1);
        }
    }
    for (row, (id, vector)) in found.into_iter().enumerate() {
        let word = vocab.word(id);
        let can_have_blanks = format == TextFormat::Glove && row > 0 && can_be_read(word);
        if word.contains(['\n', '\r']) || has_blank(word) && !can_have_blanks {
            return Err(VectorsError::Blank { word: word.to_owned() });
        }
        write!(out, "{word}")?;
        vector.iter().try_for_each(|value| write!(out, " {value}"))?;
        writeln!(out)?;
    }
    Ok(())
}
