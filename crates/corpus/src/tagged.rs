use crate::error::ReadError;
use crate::input::Inputs;
use crate::records::{Record, Text};
use crate::strings::StringTable;

/// Sentences of tokens in columns (CoNLL, CoNLL-U, JSON lines with `tags`): all columns are kept as
/// they were written, so that a file can be read, tagged and written again.
#[derive(Clone, Debug, Default)]
pub struct TaggedSentences {
    strings: StringTable,
    /// All cells, row after row.
    cells: Vec<u32>,
    /// Where each row ends among the cells.
    rows: Vec<usize>,
    /// Where each sentence ends among the rows.
    ends: Vec<usize>,
}

/// One sentence of a tagged corpus.
#[derive(Clone, Copy, Debug)]
pub struct TaggedSentence<'a> {
    all: &'a TaggedSentences,
    begin: usize,
    end: usize,
}

impl TaggedSentences {
    /// Reads a tagged corpus. Fails if it has no sentence, or a sentence in another format.
    pub fn read(inputs: &Inputs) -> Result<TaggedSentences, ReadError> {
        let mut tagged = TaggedSentences::default();
        for file_idx in 0..inputs.paths.len() {
            let mut blocks = inputs.open(file_idx)?;
            while let Some(block) = blocks.next()? {
                let mut untagged = false;
                block.records(|record| untagged |= !tagged.push(&record))?;
                if untagged {
                    let problem = "a sentence without columns; \
                                   tagged sentences come as `conll`, `conllu` or `jsonl` with `tags`";
                    return Err(ReadError::Line {
                        file: block.file.clone(),
                        line: block.first_line,
                        problem: problem.to_owned(),
                    });
                }
            }
        }
        if tagged.ends.is_empty() {
            return Err(ReadError::NoWords { files: inputs.names() });
        }
        Ok(tagged)
    }

    fn push(&mut self, record: &Record<'_>) -> bool {
        if record.rows.is_empty() {
            return matches!(&record.text, Text::Tokens(tokens) if tokens.is_empty());
        }
        for row in record.rows {
            self.cells.extend(row.iter().map(|cell| self.strings.intern(cell)));
            self.rows.push(self.cells.len());
        }
        self.ends.push(self.rows.len());
        true
    }

    /// How many sentences there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no sentence.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// How many tokens all sentences have.
    pub fn n_tokens(&self) -> usize {
        self.rows.len()
    }

    /// One sentence.
    ///
    /// # Panics
    /// If there is no such sentence.
    pub fn get(&self, sentence_idx: usize) -> TaggedSentence<'_> {
        let begin = if sentence_idx == 0 { 0 } else { self.ends[sentence_idx - 1] };
        TaggedSentence { all: self, begin, end: self.ends[sentence_idx] }
    }

    /// All sentences in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = TaggedSentence<'_>> {
        (0..self.len()).map(|i| self.get(i))
    }
}

impl<'a> TaggedSentence<'a> {
    /// How many tokens the sentence has; at least one.
    #[expect(clippy::len_without_is_empty, reason = "a sentence is never empty")]
    pub fn len(&self) -> usize {
        self.end - self.begin
    }

    /// One cell, columns counted from 0; `None` where the row has fewer columns.
    ///
    /// # Panics
    /// If there is no such token.
    pub fn cell(&self, token_idx: usize, column: usize) -> Option<&'a str> {
        let row = self.begin + token_idx;
        assert!(row < self.end, "the sentence has {} tokens", self.len());
        let begin = if row == 0 { 0 } else { self.all.rows[row - 1] };
        let cells = &self.all.cells[begin..self.all.rows[row]];
        cells.get(column).map(|&cell| self.all.strings.get(cell))
    }

    /// One column from top to bottom; `None` if any row lacks it.
    pub fn column(&self, column: usize) -> Option<Vec<&'a str>> {
        (0..self.len()).map(|token_idx| self.cell(token_idx, column)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str) -> Result<TaggedSentences, ReadError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        TaggedSentences::read(&Inputs::new([path]))
    }

    #[test]
    fn all_columns_are_kept() {
        let tagged = read("a.conll", "Dogs NNS B-NP\nbark VBP\n\nNo UH O\n").unwrap();
        assert_eq!((tagged.len(), tagged.n_tokens()), (2, 3));
        let first = tagged.get(0);
        assert_eq!(first.column(1), Some(vec!["NNS", "VBP"]));
        assert_eq!(first.column(2), None);
        assert_eq!(tagged.get(1).cell(0, 2), Some("O"));
        let row = format!("1\tNo\t{}", ["_"; 8].join("\t"));
        let conllu = read("a.conllu", &format!("# text = No\n{row}\n\n")).unwrap();
        assert_eq!(conllu.get(0).column(9), Some(vec!["_"]));
        let json = read("a.jsonl", "{\"text\":\"a b\",\"tags\":[\"X\",\"Y\"]}\n").unwrap();
        assert_eq!(json.get(0).column(1), Some(vec!["X", "Y"]));
    }

    #[test]
    fn a_text_without_columns_is_refused() {
        assert!(read("a.txt", "just words\n").is_err());
        assert!(read("a.conll", "\n\n").is_err());
    }
}
