use crate::error::ReadError;
use crate::input::Inputs;
use crate::preprocessing::{Preprocessing, Tokenize};
use crate::records::{Record, Text};
use latens_store::StringTable;
use std::ops::Range;
use thiserror::Error;

/// Sentences of tokens in columns (CoNLL, CoNLL-U, JSON lines with `tags`): all columns are kept as
/// they were written, so that a file can be read, tagged and written again.
#[derive(Clone, Debug, Default)]
pub struct TaggedSentences {
    strings: StringTable,
    /// All cells, row after row.
    cells: Vec<u32>,
    /// Where each row ends among the cells.
    rows: Vec<usize>,
    /// The word of each row, whatever its column.
    words: Vec<u32>,
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

/// A column that a word of a tagged text does not have.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("there is no column {column}: the word `{word}` in sentence {sentence} has {n_columns}")]
pub struct MissingColumn {
    /// The column, counted from 1.
    pub column: usize,
    /// The sentence, counted from 1.
    pub sentence: usize,
    /// The word.
    pub word: String,
    /// How many columns the word has, its own among them.
    pub n_columns: usize,
}

impl TaggedSentences {
    /// Reads a tagged corpus. Fails if it has no sentence, or a sentence in another format.
    pub fn read(inputs: &Inputs) -> Result<TaggedSentences, ReadError> {
        TaggedSentences::read_rows(inputs, None)
    }

    /// Reads text in any format. Where it has no columns, its words, as `tokenize` finds them, are the only
    /// one; sentences without words are left out.
    pub fn read_any(inputs: &Inputs, tokenize: Tokenize) -> Result<TaggedSentences, ReadError> {
        TaggedSentences::read_rows(inputs, Some(tokenize))
    }

    fn read_rows(
        inputs: &Inputs,
        tokenize: Option<Tokenize>,
    ) -> Result<TaggedSentences, ReadError> {
        let mut tagged = TaggedSentences::default();
        for file_idx in 0..inputs.paths.len() {
            let mut blocks = inputs.open(file_idx)?;
            while let Some(block) = blocks.next()? {
                let mut untagged = false;
                block.records(|record| {
                    untagged |= !tagged.push(&record)
                        && tokenize.map(|tokenize| tagged.push_text(&record, tokenize)).is_none();
                })?;
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
        let Text::Tokens(words) = &record.text else { unreachable!("rows are made of tokens") };
        self.words.extend(words.iter().map(|word| self.strings.intern(word)));
        self.ends.push(self.rows.len());
        true
    }

    /// Adds a sentence whose only column is its words.
    fn push_text(&mut self, record: &Record<'_>, tokenize: Tokenize) {
        let mut push = |word: &str| {
            let word = self.strings.intern(word);
            self.cells.push(word);
            self.words.push(word);
            self.rows.push(self.cells.len());
        };
        match &record.text {
            Text::Raw(text) => {
                Preprocessing { tokenize, ..Preprocessing::default() }.words(text, push);
            }
            Text::Tokens(tokens) => tokens.iter().for_each(|token| push(token)),
        }
        if self.ends.last().copied().unwrap_or(0) < self.rows.len() {
            self.ends.push(self.rows.len());
        }
    }

    /// Whether every word has the column, which is counted from 0.
    pub fn check_column(&self, column: usize) -> Result<(), MissingColumn> {
        for (sentence_idx, sentence) in self.iter().enumerate() {
            let lacks = |&token_idx: &usize| sentence.cell(token_idx, column).is_none();
            if let Some(token_idx) = (0..sentence.len()).find(lacks) {
                return Err(MissingColumn {
                    column: column + 1,
                    sentence: sentence_idx + 1,
                    word: sentence.word(token_idx).to_owned(),
                    n_columns: sentence.row(token_idx).len(),
                });
            }
        }
        Ok(())
    }

    /// Some of the sentences.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn part(&self, sentences: Range<usize>) -> TaggedSentences {
        let mut part = TaggedSentences::default();
        for sentence in sentences.map(|i| self.get(i)) {
            for token_idx in 0..sentence.len() {
                part.words.push(part.strings.intern(sentence.word(token_idx)));
                let row = sentence.row(token_idx);
                part.cells.extend(row.into_iter().map(|cell| part.strings.intern(cell)));
                part.rows.push(part.cells.len());
            }
            part.ends.push(part.rows.len());
        }
        part
    }

    /// The same text with other tags in a column, which is counted from 0.
    pub fn with_column<'a>(
        &'a self,
        column: usize,
        mut other: impl FnMut(&'a str) -> &'a str,
    ) -> TaggedSentences {
        let mut changed = self.clone();
        for (row, &end) in self.rows.iter().enumerate() {
            let begin = if row == 0 { 0 } else { self.rows[row - 1] };
            if begin + column < end {
                let tag = other(self.strings.get(self.cells[begin + column]));
                changed.cells[begin + column] = changed.strings.intern(tag);
            }
        }
        changed
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

    /// The word of a token, whichever column the format has it in.
    ///
    /// # Panics
    /// If there is no such token.
    pub fn word(&self, token_idx: usize) -> &'a str {
        self.all.strings.get(self.all.words[self.begin..self.end][token_idx])
    }

    /// The words from top to bottom.
    pub fn words(&self) -> Vec<&'a str> {
        let words = &self.all.words[self.begin..self.end];
        words.iter().map(|&word| self.all.strings.get(word)).collect()
    }

    /// All cells of a token.
    ///
    /// # Panics
    /// If there is no such token.
    pub fn row(&self, token_idx: usize) -> Vec<&'a str> {
        self.cells(token_idx).iter().map(|&cell| self.all.strings.get(cell)).collect()
    }

    /// One cell, columns counted from 0; `None` where the row has fewer columns.
    ///
    /// # Panics
    /// If there is no such token.
    pub fn cell(&self, token_idx: usize, column: usize) -> Option<&'a str> {
        self.cells(token_idx).get(column).map(|&cell| self.all.strings.get(cell))
    }

    fn cells(&self, token_idx: usize) -> &'a [u32] {
        let row = self.begin + token_idx;
        assert!(row < self.end, "the sentence has {} tokens", self.len());
        let begin = if row == 0 { 0 } else { self.all.rows[row - 1] };
        &self.all.cells[begin..self.all.rows[row]]
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
        assert_eq!(conllu.get(0).words(), ["No"]);
        let json = read("a.jsonl", "{\"text\":\"a b\",\"tags\":[\"X\",\"Y\"]}\n").unwrap();
        assert_eq!(json.get(0).column(1), Some(vec!["X", "Y"]));
        assert_eq!(json.get(0).word(1), "b");
    }

    #[test]
    fn a_part_and_another_column_leave_the_rest_as_it_is() {
        let tagged = read("a.conll", "No UH O\n\nDogs NNS B-NP\nbark VBP\n\nGo VB O\n").unwrap();
        let part = tagged.part(1..3);
        assert_eq!((part.len(), part.n_tokens()), (2, 3));
        assert_eq!(part.get(0).row(0), ["Dogs", "NNS", "B-NP"]);
        assert_eq!(part.get(0).row(1), ["bark", "VBP"]);
        assert_eq!(part.get(1).words(), ["Go"]);
        assert!(tagged.part(2..2).is_empty());

        let coarse = part.with_column(1, |tag| if tag.starts_with('V') { "VERB" } else { tag });
        assert_eq!(coarse.get(0).column(1), Some(vec!["NNS", "VERB"]));
        assert_eq!(coarse.get(1).row(0), ["Go", "VERB", "O"]);
        assert_eq!(coarse.get(0).words(), ["Dogs", "bark"]);
        assert_eq!(part.with_column(2, |_| "O").get(0).row(1), ["bark", "VBP"]);
    }

    #[test]
    fn a_missing_column_is_told_with_its_place() {
        let tagged = read("a.conll", "No UH O\n\nDogs NNS B-NP\nbark VBP\n").unwrap();
        assert_eq!(tagged.check_column(1), Ok(()));
        let expected = "there is no column 3: the word `bark` in sentence 2 has 2";
        assert_eq!(tagged.check_column(2).unwrap_err().to_string(), expected);
    }

    #[test]
    fn text_without_columns_has_one_if_so_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        std::fs::write(&path, "No, no!\n\nDogs bark\n").unwrap();
        let read =
            |tokenize| TaggedSentences::read_any(&Inputs::new([path.clone()]), tokenize).unwrap();
        let tagged = read(Tokenize::Words);
        assert_eq!(tagged.len(), 2);
        assert_eq!(tagged.get(0).words(), ["No", ",", "no", "!"]);
        assert_eq!(tagged.get(1).row(1), ["bark"]);
        assert_eq!(read(Tokenize::Blanks).get(0).column(0), Some(vec!["No,", "no!"]));
    }

    #[test]
    fn a_text_without_columns_is_refused() {
        assert!(read("a.txt", "just words\n").is_err());
        assert!(read("a.conll", "\n\n").is_err());
    }
}
