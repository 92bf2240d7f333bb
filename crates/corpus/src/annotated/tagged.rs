use crate::error::ReadError;
use crate::input::inputs::Inputs;
use crate::input::records::{Record, Text, check_tokens};
use crate::input::source::{Files, Source};
use crate::words::preprocessing::Preprocessing;
use crate::words::tokenize::Tokenize;
use latens_store::StringTable;
use std::borrow::Cow;
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
                let mut untagged = None;
                block.records(|record| {
                    if untagged.is_some() || tagged.push(&record) {
                        return;
                    }
                    match tokenize {
                        Some(tokenize) => tagged.push_text(&record, tokenize),
                        None => untagged = Some(record.line),
                    }
                })?;
                if let Some(line) = untagged {
                    let problem = "a sentence without columns; \
                                   tags need the format `conll`, `conllu` or `jsonl` with `tags`";
                    return Err(ReadError::Line {
                        file: block.file.clone(),
                        line,
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
    pub(super) fn push(&mut self, record: &Record<'_>) -> bool {
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
                    // Forged parameters may contain any number.
                    column: column.saturating_add(1),
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

    /// The same text with words in the normal form of `preprocessing`; columns stay as written.
    pub fn normalized(&self, preprocessing: &Preprocessing) -> Cow<'_, TaggedSentences> {
        let normal = |word: &u32| preprocessing.normalize_word(self.strings.get(*word));
        let is_normal = |word: &u32| matches!(normal(word), Cow::Borrowed(_));
        if self.words.iter().all(is_normal) {
            return Cow::Borrowed(self);
        }
        let mut changed = self.clone();
        for (word, to) in self.words.iter().zip(&mut changed.words) {
            *to = changed.strings.intern(&normal(word));
        }
        Cow::Owned(changed)
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
