//! Text to be tagged, kept as it was written, so that it can be written again with tags.

use super::guess::ColumnGuess;
use super::tagged::TaggedSentences;
use crate::error::ReadError;
use crate::input::blocks::{Block, Blocks};
use crate::input::format::Format;
use crate::input::inputs::Inputs;
use crate::input::records::{Record, Text, conll_row, conllu_row};
use crate::words::tokenize::Tokenize;
use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

/// Text to be tagged: its sentences, and how each of them is written in its file.
#[derive(Debug, Default)]
pub struct TextToTag {
    /// The words and columns of each sentence.
    pub sentences: TaggedSentences,
    /// How each sentence is written.
    pub layouts: Vec<Layout>,
    /// Lines after the last sentence, such as comments.
    pub rest: Vec<String>,
    /// Paths of files without a known extension that look like columns and were read so.
    pub guessed: Vec<String>,
}

/// How a sentence is written in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// Running text with the bytes of each word.
    Plain {
        /// The text.
        text: String,
        /// Range of bytes of each word.
        words: Vec<Range<usize>>,
    },
    /// Lines of the format [`Format::Conll`], each with the token that it is, if any.
    Conll(Vec<(String, Option<usize>)>),
    /// Lines of the format [`Format::Conllu`], each with the token that it is, if any.
    Conllu(Vec<(String, Option<usize>)>),
}

/// The text of a sentence, and the place of each word in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceText {
    /// The text.
    pub text: String,
    /// Range of each word in `text`, in Unicode characters. Words of one CoNLL-U multiword token have the same range.
    pub words: Vec<Range<usize>>,
}

impl TextToTag {
    /// Reads text. `tokenize` splits plain text into words.
    ///
    /// Files whose extension says nothing are read as plain text or, if `guess` is given and finds columns, in the format
    /// [`Format::Conll`].
    pub fn read(
        inputs: &Inputs,
        tokenize: Tokenize,
        guess: Option<&ColumnGuess<'_>>,
    ) -> Result<TextToTag, ReadError> {
        let mut read = TextToTag::default();
        let (mut n_bytes, mut lines) = (0, Pending::default());
        for path in &inputs.paths {
            read.read_file(path, inputs, (tokenize, guess), &mut lines, &mut n_bytes)?;
        }
        read.rest = lines.lines;
        if read.sentences.is_empty() {
            let names = inputs.paths.iter().map(|path| format!("`{}`", path.display()));
            return Err(ReadError::NoWords { files: names.collect::<Vec<_>>().join(", ") });
        }
        Ok(read)
    }

    fn read_file(
        &mut self,
        path: &Path,
        inputs: &Inputs,
        (tokenize, guess): (Tokenize, Option<&ColumnGuess<'_>>),
        lines: &mut Pending,
        n_bytes: &mut u64,
    ) -> Result<(), ReadError> {
        let mut format = inputs.format.clone().unwrap_or_else(|| Format::of_path(path));
        let says_nothing = matches!(format, Format::Lines | Format::Docs(_));
        let mut guess = guess.filter(|_| inputs.format.is_none() && says_nothing);
        let mut blocks =
            Blocks::open(path, &Inputs { format: Some(format.clone()), ..inputs.clone() })?;
        while let Some(block) = blocks.next()? {
            if let Some(guess) = guess.take()
                && guess.says_columns(&block.text()?)
            {
                format = Format::Conll;
                self.guessed.push(path.display().to_string());
            }
            match format {
                Format::Conll | Format::Conllu => {
                    self.push_lines(&block, &format, inputs.max_line, lines)?;
                }
                _ => block.records(|record| self.push_plain(&record, tokenize))?,
            }
            *n_bytes += block.len() as u64;
            inputs.watch.iter().for_each(|watch| watch.report(*n_bytes));
        }
        self.end_sentence(&format, &path.display().to_string(), lines)
    }

    /// Adds the lines of a block with one token per line.
    fn push_lines(
        &mut self,
        block: &Block,
        format: &Format,
        max_line: usize,
        pending: &mut Pending,
    ) -> Result<(), ReadError> {
        for (line, number) in block.text()?.lines().zip(block.first_line..) {
            if line.trim().is_empty() {
                self.end_sentence(format, &block.file, pending)?;
                continue;
            }
            if pending.lines.is_empty() {
                (pending.first_line, pending.n_bytes) = (number, 0);
            }
            pending.n_bytes += line.len() + 1;
            if pending.n_bytes > max_line {
                let (file, line) = (block.file.clone(), pending.first_line);
                return Err(ReadError::TooLong { file, line, record: "sentence", limit: max_line });
            }
            pending.lines.push(line.to_owned());
        }
        Ok(())
    }

    /// Adds the pending lines as a sentence. Lines without a token wait for the next sentence.
    fn end_sentence(
        &mut self,
        format: &Format,
        file: &str,
        pending: &mut Pending,
    ) -> Result<(), ReadError> {
        let is_conllu = *format == Format::Conllu;
        let (mut rows, mut words, mut tokens) = (Vec::new(), Vec::new(), Vec::new());
        for (line, number) in pending.lines.iter().zip(pending.first_line..) {
            let row =
                if is_conllu && !line.is_empty() { conllu_row(line) } else { conll_row(line) };
            let problem =
                |problem| ReadError::Line { file: file.to_owned(), line: number, problem };
            tokens.push(row.map_err(problem)?.map(|(row, word)| {
                words.push(Cow::Borrowed(row[word]));
                rows.push(row);
                rows.len() - 1
            }));
        }
        if rows.is_empty() {
            if !pending.lines.is_empty() {
                pending.lines.push(String::new());
            }
            return Ok(());
        }
        let line = pending.first_line;
        let text = Text::Tokens(words);
        self.sentences.push(&Record { text, rows: &rows, ..Record::of_text("", line) });
        let lines = std::mem::take(&mut pending.lines).into_iter().zip(tokens).collect();
        self.layouts.push(if is_conllu { Layout::Conllu(lines) } else { Layout::Conll(lines) });
        Ok(())
    }

    /// Adds a record of running text, or of words that are given one by one.
    fn push_plain(&mut self, record: &Record<'_>, tokenize: Tokenize) {
        let (text, words) = match &record.text {
            Text::Raw(text) => (text.to_string(), ranges(text, tokenize)),
            Text::Tokens(tokens) => joined(tokens.iter().map(|token| (&**token, " "))),
        };
        if words.is_empty() {
            return;
        }
        let rows: Vec<Vec<&str>> = match record.rows {
            [] => words.iter().map(|word| vec![&text[word.clone()]]).collect(),
            rows => rows.to_vec(),
        };
        let tokens = words.iter().map(|word| Cow::Borrowed(&text[word.clone()])).collect();
        let tokens = Text::Tokens(tokens);
        self.sentences.push(&Record {
            text: tokens,
            rows: &rows,
            ..Record::of_text("", record.line)
        });
        self.layouts.push(Layout::Plain { text, words });
    }

    /// The text of a sentence, and the place of each word in it.
    ///
    /// Words in columns are joined by spaces. CoNLL-U says which words have no space after them, and often the text.
    ///
    /// # Panics
    /// If `sentence_idx` is out of range.
    pub fn source_text(&self, sentence_idx: usize) -> SourceText {
        match &self.layouts[sentence_idx] {
            Layout::Plain { text, words } => SourceText::of(text, words),
            Layout::Conll(_) => {
                let words = self.sentences.get(sentence_idx).words();
                let (text, words) = joined(words.into_iter().map(|word| (word, " ")));
                SourceText::of(&text, &words)
            }
            Layout::Conllu(lines) => conllu_text(lines),
        }
    }
}

impl SourceText {
    /// Converts ranges of bytes in ascending order to ranges of characters.
    fn of(text: &str, words: &[Range<usize>]) -> SourceText {
        let (mut byte, mut char) = (0, 0);
        let mut count = |until: usize| {
            if until < byte {
                (byte, char) = (0, 0);
            }
            char += text[byte..until].chars().count();
            byte = until;
            char
        };
        let words = words.iter().map(|word| count(word.start)..count(word.end)).collect();
        SourceText { text: text.to_owned(), words }
    }
}

/// Lines of a sentence that has not ended yet.
#[derive(Default)]
struct Pending {
    lines: Vec<String>,
    first_line: u64,
    n_bytes: usize,
}

/// The bytes of each word of a text.
fn ranges(text: &str, tokenize: Tokenize) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    tokenize.split(text, |word| {
        let start = word.as_ptr() as usize - text.as_ptr() as usize;
        words.push(start..start + word.len());
    });
    words
}

/// Joins words, each with what follows it, and returns the bytes of each word.
fn joined<'a>(words: impl Iterator<Item = (&'a str, &'a str)>) -> (String, Vec<Range<usize>>) {
    let (mut text, mut ranges) = (String::new(), Vec::new());
    for (word, after) in words {
        ranges.push(text.len()..text.len() + word.len());
        text += word;
        text += after;
    }
    text.truncate(text.trim_end().len());
    (text, ranges)
}

/// The text of a CoNLL-U sentence. A multiword token stands for its words.
fn conllu_text(lines: &[(String, Option<usize>)]) -> SourceText {
    /// A form, what follows it, and the number of words that it stands for.
    type Form<'a> = (&'a str, &'a str, usize);
    let mut forms: Vec<Form<'_>> = Vec::new();
    let (mut given, mut covered) = (None, 0);
    for (line, token) in lines {
        if let Some(text) = line.strip_prefix("# text = ") {
            given = Some(text);
        }
        let cells: Vec<&str> = line.split('\t').collect();
        if line.starts_with('#') || cells.len() != 10 {
            continue;
        }
        let after = if cells[9].split('|').any(|fact| fact == "SpaceAfter=No") { "" } else { " " };
        let ends = cells[0].split_once('-').and_then(|(first, last)| {
            Some((first.parse::<usize>().ok()?, last.parse::<usize>().ok()?))
        });
        match (ends, token) {
            (Some((first, last)), None) if first <= last => {
                covered = last - first + 1;
                forms.push((cells[1], after, covered));
            }
            (_, Some(_)) if covered > 0 => covered -= 1,
            (_, Some(_)) => forms.push((cells[1], after, 1)),
            _ => {}
        }
    }
    let (text, places) = joined(forms.iter().map(|&(form, after, _)| (form, after)));
    let found = given.and_then(|given| Some((given.to_owned(), places_in(given, &forms)?)));
    let (text, places) = found.unwrap_or((text, places));
    let repeated = |(place, form): (Range<usize>, &Form<'_>)| vec![place; form.2];
    let mut words: Vec<Range<usize>> = places.into_iter().zip(&forms).flat_map(repeated).collect();
    // A range of more words than follow.
    words.truncate(lines.iter().filter(|(_, token)| token.is_some()).count());
    SourceText::of(&text, &words)
}

/// The bytes of each form in the given text, if it consists of them and of whitespace.
fn places_in(text: &str, forms: &[(&str, &str, usize)]) -> Option<Vec<Range<usize>>> {
    let mut at = 0;
    let mut place = |&(form, _, _): &(&str, &str, usize)| {
        at += text[at..].len() - text[at..].trim_start().len();
        text[at..].starts_with(form).then(|| {
            at += form.len();
            at - form.len()..at
        })
    };
    forms.iter().map(&mut place).collect()
}
