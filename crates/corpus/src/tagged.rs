use crate::error::ReadError;
use crate::input::inputs::Inputs;
use crate::input::records::{Record, Text, check_tokens};
use crate::input::source::{Files, Source};
use crate::words::preprocessing::{Preprocessing, Tokenize};
use latens_store::StringTable;
use std::ops::Range;
use thiserror::Error;

/// Sentences whose tokens have columns of tags (CoNLL, CoNLL-U, JSON Lines with `tags`).
///
/// All columns are kept as they were written, so that a file can be read, tagged and written again.
///
/// ```
/// use latens_corpus::TaggedSentences;
///
/// let tagged = TaggedSentences::from_rows([[("dogs", "NOUN"), ("bark", "VERB")]])?;
/// assert_eq!(tagged.get(0).words(), ["dogs", "bark"]);
/// assert_eq!(tagged.get(0).column(1), Some(vec!["NOUN", "VERB"]));
/// # Ok::<(), latens_corpus::ReadError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct TaggedSentences {
    strings: StringTable,
    /// The cells of all rows.
    cells: Vec<u32>,
    /// End of each row in `cells`.
    rows: Vec<usize>,
    /// The word of each row, whichever column it is in.
    words: Vec<u32>,
    /// End of each sentence in `rows`.
    ends: Vec<usize>,
}

/// One sentence of a tagged corpus.
#[derive(Clone, Copy, Debug)]
pub struct TaggedSentence<'a> {
    all: &'a TaggedSentences,
    begin: usize,
    end: usize,
}

/// A token lacks a column.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("there is no column {column}: the word `{word}` in sentence {sentence} has {n_columns}")]
pub struct MissingColumn {
    /// Number of the missing column, counted from 1.
    pub column: usize,
    /// Sentence number, counted from 1.
    pub sentence: usize,
    /// The word of the token.
    pub word: String,
    /// Number of columns that the token has, including the word itself.
    pub n_columns: usize,
}

impl TaggedSentences {
    /// Reads tagged sentences. Fails if there are none, or if a sentence has no columns.
    pub fn read(inputs: &Inputs) -> Result<TaggedSentences, ReadError> {
        TaggedSentences::read_rows(inputs, None)
    }

    /// Reads text in any format. In text without columns, the words that `tokenize` finds form the only
    /// column. Sentences without words are skipped.
    pub fn read_any(inputs: &Inputs, tokenize: Tokenize) -> Result<TaggedSentences, ReadError> {
        TaggedSentences::read_rows(inputs, Some(tokenize))
    }

    fn read_rows(
        inputs: &Inputs,
        tokenize: Option<Tokenize>,
    ) -> Result<TaggedSentences, ReadError> {
        let mut tagged = TaggedSentences::default();
        let mut files = Files::new(inputs);
        while let Some(mut blocks) = files.next()? {
            while let Some(block) = blocks.next()? {
                let mut untagged = false;
                block.records(|record| {
                    untagged |= !tagged.push(&record)
                        && tokenize.map(|tokenize| tagged.push_text(&record, tokenize)).is_none();
                })?;
                if untagged {
                    let problem = "a sentence without columns; \
                                   tags need the format `conll`, `conllu` or `jsonl` with `tags`";
                    return Err(ReadError::Line {
                        file: block.file.clone(),
                        line: block.first_line,
                        problem: problem.to_owned(),
                    });
                }
            }
        }
        if tagged.ends.is_empty() {
            return Err(ReadError::NoWords { files: files.names() });
        }
        Ok(tagged)
    }

    /// Tagged sentences in memory: each sentence is a sequence of pairs of a word and its tag. Words
    /// become column 0, tags column 1. Empty sentences are skipped.
    ///
    /// Fails if there are no words, or if a word or tag is empty or contains a tab or a line break.
    pub fn from_rows<S, W, T>(
        sentences: impl IntoIterator<Item = S>,
    ) -> Result<TaggedSentences, ReadError>
    where
        S: IntoIterator<Item = (W, T)>,
        W: AsRef<str>,
        T: AsRef<str>,
    {
        let mut tagged = TaggedSentences::default();
        for (sentence_idx, sentence) in sentences.into_iter().enumerate() {
            for (word, tag) in sentence {
                let row = [word.as_ref(), tag.as_ref()];
                check_tokens(&row).map_err(|problem| {
                    let sentence = sentence_idx + 1;
                    ReadError::Token { sentence, problem }
                })?;
                let row = row.map(|cell| tagged.strings.intern(cell));
                tagged.words.push(row[0]);
                tagged.cells.extend(row);
                tagged.rows.push(tagged.cells.len());
            }
            tagged.end_sentence();
        }
        if tagged.is_empty() {
            return Err(ReadError::NoWords { files: "`rows`".to_owned() });
        }
        Ok(tagged)
    }

    /// Ends the current sentence, unless it has no tokens.
    fn end_sentence(&mut self) {
        if self.ends.last().copied().unwrap_or(0) < self.rows.len() {
            self.ends.push(self.rows.len());
        }
    }

    /// Adds a sentence with columns. Returns whether it had any.
    fn push(&mut self, record: &Record<'_>) -> bool {
        if record.rows.is_empty() {
            return matches!(&record.text, Text::Tokens(tokens) if tokens.is_empty());
        }
        for row in record.rows {
            self.cells.extend(row.iter().map(|cell| self.strings.intern(cell)));
            self.rows.push(self.cells.len());
        }
        let Text::Tokens(words) = &record.text else {
            unreachable!("records with rows have tokens")
        };
        self.words.extend(words.iter().map(|word| self.strings.intern(word)));
        self.ends.push(self.rows.len());
        true
    }

    /// Adds a sentence with its words as the only column.
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
        self.end_sentence();
    }

    /// Fails if any token lacks the column, which is counted from 0.
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

    /// Returns a range of the sentences.
    ///
    /// # Panics
    /// If the range is out of bounds.
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

    /// Returns the same text with each tag of a column, counted from 0, replaced by `other(tag)`.
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

    /// Number of sentences.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no sentences.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Number of tokens of all sentences.
    pub fn n_tokens(&self) -> usize {
        self.rows.len()
    }

    /// Returns one sentence.
    ///
    /// # Panics
    /// If `sentence_idx` is out of range.
    pub fn get(&self, sentence_idx: usize) -> TaggedSentence<'_> {
        let begin = if sentence_idx == 0 { 0 } else { self.ends[sentence_idx - 1] };
        TaggedSentence { all: self, begin, end: self.ends[sentence_idx] }
    }

    /// Iterates over all sentences in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = TaggedSentence<'_>> {
        (0..self.len()).map(|i| self.get(i))
    }
}

impl<'a> TaggedSentence<'a> {
    /// Number of tokens; at least one.
    #[expect(clippy::len_without_is_empty, reason = "a sentence is never empty")]
    pub fn len(&self) -> usize {
        self.end - self.begin
    }

    /// Returns the word of a token, whichever column it is in.
    ///
    /// # Panics
    /// If `token_idx` is out of range.
    pub fn word(&self, token_idx: usize) -> &'a str {
        self.all.strings.get(self.all.words[self.begin..self.end][token_idx])
    }

    /// Returns all words in order.
    pub fn words(&self) -> Vec<&'a str> {
        let words = &self.all.words[self.begin..self.end];
        words.iter().map(|&word| self.all.strings.get(word)).collect()
    }

    /// Returns all cells of a token.
    ///
    /// # Panics
    /// If `token_idx` is out of range.
    pub fn row(&self, token_idx: usize) -> Vec<&'a str> {
        self.cells(token_idx).iter().map(|&cell| self.all.strings.get(cell)).collect()
    }

    /// Returns one cell of a token, or `None` if the token has fewer columns. Columns are counted from 0.
    ///
    /// # Panics
    /// If `token_idx` is out of range.
    pub fn cell(&self, token_idx: usize, column: usize) -> Option<&'a str> {
        self.cells(token_idx).get(column).map(|&cell| self.all.strings.get(cell))
    }

    fn cells(&self, token_idx: usize) -> &'a [u32] {
        let row = self.begin + token_idx;
        assert!(row < self.end, "the sentence has {} tokens", self.len());
        let begin = if row == 0 { 0 } else { self.all.rows[row - 1] };
        &self.all.cells[begin..self.all.rows[row]]
    }

    /// Returns one column in order, or `None` if any token lacks it. Columns are counted from 0.
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
    fn rows_in_memory_are_read_like_the_same_rows_in_a_file() {
        let rows = [vec![("Dogs", "NNS"), ("bark", "VBP")], vec![], vec![("No", "UH")]];
        let memory = TaggedSentences::from_rows(rows).unwrap();
        let file = read("a.conll", "Dogs NNS\nbark VBP\n\nNo UH\n").unwrap();
        assert_eq!((memory.len(), memory.n_tokens()), (file.len(), file.n_tokens()));
        for (a, b) in memory.iter().zip(file.iter()) {
            assert_eq!(a.words(), b.words());
            assert!((0..a.len()).all(|i| a.row(i) == b.row(i)));
        }
        let owned = vec![vec![("Dogs".to_owned(), "NNS".to_owned())]];
        assert_eq!(TaggedSentences::from_rows(owned).unwrap().get(0).row(0), ["Dogs", "NNS"]);
    }

    #[test]
    fn rows_in_memory_must_be_readable_again() {
        let message = |rows: Vec<Vec<(&str, &str)>>| {
            TaggedSentences::from_rows(rows).unwrap_err().to_string()
        };
        assert_eq!(message(vec![]), "there are no words in `rows`");
        assert_eq!(message(vec![vec![]]), "there are no words in `rows`");
        for row in [("", "X"), ("a", ""), ("a\tb", "X"), ("a", "X\n")] {
            let message = message(vec![vec![("good", "X")], vec![row]]);
            assert!(message.starts_with("sentence 2: the token \""), "{message}");
        }
    }

    #[test]
    fn part_and_with_column_leave_the_rest_unchanged() {
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
    fn the_error_for_a_missing_column_names_sentence_and_word() {
        let tagged = read("a.conll", "No UH O\n\nDogs NNS B-NP\nbark VBP\n").unwrap();
        assert_eq!(tagged.check_column(1), Ok(()));
        let expected = "there is no column 3: the word `bark` in sentence 2 has 2";
        assert_eq!(tagged.check_column(2).unwrap_err().to_string(), expected);
    }

    #[test]
    fn read_any_gives_text_without_columns_a_column_of_words() {
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
    fn text_without_columns_is_refused() {
        assert!(read("a.txt", "just words\n").is_err());
        assert!(read("a.conll", "\n\n").is_err());
    }
}
