//! How records (sentences or documents) are written in a text file.

use memchr::memrchr;
use std::path::Path;

/// How records are written in a text file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// One sentence a line. A blank line is a sentence without words, as the language-modelling
    /// field counts them.
    #[default]
    Lines,
    /// One document a line, in tab-separated fields. Blank lines are skipped.
    Docs(Vec<Field>),
    /// One token a line in blank-separated columns, the word first; a blank line ends a sentence;
    /// `-DOCSTART-` lines are skipped.
    Conll,
    /// The ten-column format of Universal Dependencies. Comments, multiword tokens and empty nodes
    /// are skipped.
    Conllu,
    /// One JSON object a line, with `text` (a string, or an array of tokens) and perhaps `label` and
    /// `tags`. Blank lines are skipped.
    Jsonl,
}

/// A field of the format `docs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// What the document is about, for classification.
    Label,
    /// Which part of the data the document belongs to, such as `train`.
    Split,
    /// The text itself.
    Text,
    /// Anything else.
    Skip,
}

impl Format {
    /// The format that a file's name suggests, with `.gz` and `.zst` taken off.
    pub fn of_path(path: &Path) -> Format {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
        match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
            "conll" => Format::Conll,
            "conllu" => Format::Conllu,
            "jsonl" | "ndjson" => Format::Jsonl,
            "tsv" => Format::Docs(vec![Field::Label, Field::Text]),
            _ => Format::Lines,
        }
    }

    /// Where the last whole record in `bytes` ends, if there is one. For formats of one record a
    /// line, the first `searched` bytes are known to have no end.
    pub(crate) fn last_record_end(&self, bytes: &[u8], searched: usize) -> Option<usize> {
        match self {
            Format::Lines | Format::Docs(_) | Format::Jsonl => last_line_end(bytes, searched),
            Format::Conll | Format::Conllu => last_blank_line_end(bytes),
        }
    }
}

/// Where the last line of `bytes` that is whole ends. `searched` bytes are known to have no end.
fn last_line_end(bytes: &[u8], searched: usize) -> Option<usize> {
    memrchr(b'\n', &bytes[searched..]).map(|at| searched + at + 1)
}

/// Where the last blank line of `bytes` ends.
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
    fn blank_lines_are_found_from_the_end() {
        assert_eq!(last_blank_line_end(b"a\n\nb\n"), Some(3));
        assert_eq!(last_blank_line_end(b"a\n \t\r\nb\nc"), Some(6));
        assert_eq!(last_blank_line_end(b"\na\n"), Some(1));
        assert_eq!(last_blank_line_end(b"a\nb\n"), None);
        assert_eq!(last_blank_line_end(b""), None);
    }
}
