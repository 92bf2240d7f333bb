use memchr::{memchr, memrchr};
use std::path::Path;

/// How a text file stores its records (sentences or documents).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// One sentence per line. A blank line is an empty sentence, as is usual in language modeling.
    #[default]
    Lines,
    /// One document per line, in tab-separated fields. Blank lines are skipped.
    Docs(Vec<Field>),
    /// One token per line in columns separated by whitespace, the word first. A blank line ends a
    /// sentence. `-DOCSTART-` lines are skipped.
    Conll,
    /// The ten-column format of Universal Dependencies. Comments, multiword tokens and empty nodes
    /// are skipped.
    Conllu,
    /// One JSON object per line, with the key `text` (a string or an array of tokens) and optionally
    /// `id`, `label` and `tags`. [`Columns`](crate::Columns) names other keys. Blank lines are skipped.
    Jsonl,
    /// Comma-separated values with a header (RFC 4180), one document per row.
    Csv,
    /// Tab-separated values, one document per row: with a header that names the column of the text, or
    /// without a header and exactly two columns, label and text.
    Tsv,
    /// Token ids in a NumPy array (`.npy`) of one or two dimensions, in an archive of such arrays (`.npz`),
    /// or in the column `input_ids` of an Arrow file (`.arrow`, with the feature `arrow`).
    /// [`Inputs::token_names`](crate::Inputs::token_names) names the tokens. A sequence ends with the end token, and with a row.
    Ids,
}

/// A field of the format [`Format::Docs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Identifier of the document.
    Id,
    /// Class of the document.
    Label,
    /// Part of the data that the document belongs to, such as `train`.
    Split,
    /// Text of the document.
    Text,
    /// Ignored field.
    Skip,
}

impl Format {
    /// Infers the format from the extension of a file, ignoring `.gz` and `.zst`.
    pub fn of_path(path: impl AsRef<Path>) -> Format {
        let name =
            path.as_ref().file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
        match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
            "conll" => Format::Conll,
            "conllu" => Format::Conllu,
            "jsonl" | "ndjson" => Format::Jsonl,
            "csv" => Format::Csv,
            "tsv" => Format::Tsv,
            "npy" | "npz" | "arrow" => Format::Ids,
            _ => Format::Lines,
        }
    }

    /// Offset of the first record that is longer than `max` bytes, if there is one. Line breaks belong to
    /// the record that they end; a blank line is a record of its own.
    pub(crate) fn first_longer_than(&self, max: usize, bytes: &[u8]) -> Option<usize> {
        let has_sentences = matches!(self, Format::Conll | Format::Conllu);
        let (mut record, mut line) = (0, 0);
        while line < bytes.len() {
            let end = memchr(b'\n', &bytes[line..]).map_or(bytes.len(), |at| line + at + 1);
            // A sentence goes on to the next blank line.
            let ends = !has_sentences || bytes[line..end].iter().all(u8::is_ascii_whitespace);
            let begin = if ends { line } else { record };
            if end - begin > max {
                return Some(begin);
            }
            if ends {
                record = end;
            }
            line = end;
        }
        None
    }

    /// What a record is, for messages.
    pub(crate) fn record_name(&self) -> &'static str {
        match self {
            Format::Lines | Format::Docs(_) | Format::Jsonl | Format::Csv | Format::Tsv => "line",
            Format::Ids => "sequence",
            Format::Conll | Format::Conllu => "sentence",
        }
    }

    /// End of the last complete record in `bytes`, if there is one. For formats with one record per
    /// line, the first `searched` bytes are known to contain no end.
    pub(crate) fn last_record_end(&self, bytes: &[u8], searched: usize) -> Option<usize> {
        match self {
            Format::Lines
            | Format::Docs(_)
            | Format::Jsonl
            | Format::Csv
            | Format::Tsv
            | Format::Ids => last_line_end(bytes, searched),
            Format::Conll | Format::Conllu => last_blank_line_end(bytes),
        }
    }
}

/// End of the last complete line in `bytes`. The first `searched` bytes contain no line break.
fn last_line_end(bytes: &[u8], searched: usize) -> Option<usize> {
    memrchr(b'\n', &bytes[searched..]).map(|at| searched + at + 1)
}

/// End of the last blank line in `bytes`.
fn last_blank_line_end(bytes: &[u8]) -> Option<usize> {
    let mut end = last_line_end(bytes, 0)?;
    loop {
        let line_start = last_line_end(&bytes[..end - 1], 0).unwrap_or(0);
        if bytes[line_start..end].iter().all(u8::is_ascii_whitespace) {
            return Some(end);
        }
        if line_start == 0 {
            return None;
        }
        end = line_start;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_long_record_is_found() {
        let lines = b"ab\nabc\nabcd";
        assert_eq!(Format::Lines.first_longer_than(4, lines), None);
        assert_eq!(Format::Jsonl.first_longer_than(3, lines), Some(3));
        assert_eq!(Format::Lines.first_longer_than(2, lines), Some(0));
        let sentences = b"a\nb\n\na\nb\nc\n   \n\n";
        assert_eq!(Format::Conll.first_longer_than(6, sentences), None);
        assert_eq!(Format::Conllu.first_longer_than(5, sentences), Some(5));
        assert_eq!(Format::Conll.first_longer_than(3, sentences), Some(0));
        assert_eq!(Format::Conll.first_longer_than(3, b"a\n\n    \n"), Some(3));
    }

    #[test]
    fn blank_lines_are_found_from_the_end() {
        assert_eq!(last_blank_line_end(b"a\n\nb\n"), Some(3));
        assert_eq!(last_blank_line_end(b"a\n \t\r\nb\nc"), Some(6));
        assert_eq!(last_blank_line_end(b"\na\n"), Some(1));
        assert_eq!(last_blank_line_end(b"a\nb\n"), None);
        assert_eq!(last_blank_line_end(b""), None);
    }
}
