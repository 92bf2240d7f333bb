//! The single pass from text to word numbers, shared by sentences and documents.
//!
//! All threads take blocks of the text, and each thread numbers the words of its block on its own.
//! These numbers are then translated block by block, in order. While the vocabulary is unknown, words
//! get provisional numbers in the order of their first occurrence; the final ids, by frequency, follow
//! at the end. The text is therefore read only once.

use crate::cleaning::rules::Cleaning;
use crate::error::ReadError;
use crate::input::blocks::Block;
use crate::input::records::{Record, Text};
use crate::input::rows::BLOCK_BYTES;
use crate::input::source::Source;
use crate::lexicon::Lexicon;
use crate::words::preprocessing::Preprocessing;
use crate::words::vocab::{EOS, UNK, Vocab, VocabLimits};
use crate::words::word_id::WordId;
use latens_store::StringTable;
use rayon::prelude::*;

/// An encoded sentence or document.
pub(crate) struct EncodedRecord<'a> {
    pub(crate) words: &'a [u32],
    pub(crate) names: &'a RecordNames,
}

/// What a record is called besides its words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecordNames {
    pub(crate) label: String,
    pub(crate) split: String,
    pub(crate) id: String,
    /// The columns of [`Columns::kept`](crate::Columns::kept).
    pub(crate) kept: Vec<String>,
}

/// Receives encoded records.
pub(crate) trait Sink {
    /// Receives the next record of the current file.
    fn record(&mut self, record: EncodedRecord<'_>) -> Result<(), ReadError>;
    /// Ends the current file.
    fn end_of_file(&mut self) -> Result<(), ReadError>;
}

/// Encodes a text with an unknown vocabulary. Returns the words, in the order of the provisional
/// numbers that `sink` received.
pub(crate) fn encode_new_words(
    source: &mut impl Source,
    preprocessing: &Preprocessing,
    sink: &mut impl Sink,
) -> Result<StringTable, ReadError> {
    let mut seen = StringTable::default();
    let cleaning = Cleaning::default();
    encode(source, preprocessing, &cleaning, &mut Numbering::Learned(&mut seen), sink)?;
    Ok(seen)
}

/// Encodes a text with a known vocabulary; all other words become [`WordId::UNK`].
pub(crate) fn encode_known_words(
    source: &mut impl Source,
    lexicon: &Lexicon,
    sink: &mut impl Sink,
) -> Result<(), ReadError> {
    let mut numbering = Numbering::Fixed(&lexicon.vocab);
    encode(source, &lexicon.preprocessing, &lexicon.cleaning, &mut numbering, sink)
}

/// Encodes a text with a known vocabulary. Returns the words that it lacks: their numbers continue
/// those of the vocabulary.
pub(crate) fn encode_all_words(
    source: &mut impl Source,
    lexicon: &Lexicon,
    sink: &mut impl Sink,
) -> Result<StringTable, ReadError> {
    let mut extra = StringTable::default();
    let mut numbering = Numbering::Growing(&lexicon.vocab, &mut extra);
    encode(source, &lexicon.preprocessing, &lexicon.cleaning, &mut numbering, sink)?;
    Ok(extra)
}

/// How words are numbered.
enum Numbering<'a> {
    /// By a vocabulary; words that it lacks are [`WordId::UNK`].
    Fixed(&'a Vocab),
    /// By a vocabulary; words that it lacks get the numbers that follow.
    Growing(&'a Vocab, &'a mut StringTable),
    /// In the order of their first occurrence.
    Learned(&'a mut StringTable),
}

impl Numbering<'_> {
    fn fixed(&self) -> Option<&Vocab> {
        match self {
            Numbering::Fixed(vocab) => Some(vocab),
            Numbering::Growing(..) | Numbering::Learned(_) => None,
        }
    }

    fn number(&mut self, word: &str) -> u32 {
        match self {
            Numbering::Fixed(vocab) => vocab.id(word).0,
            Numbering::Growing(vocab, extra) => number_any_word(vocab, extra, word),
            Numbering::Learned(words) => words.intern(word),
        }
    }
}

/// Returns the id of a word, or a number after the last id for a word that the vocabulary lacks.
pub(crate) fn number_any_word(vocab: &Vocab, extra: &mut StringTable, word: &str) -> u32 {
    // `<unk>` in a text is the unknown word; `<eos>` is a new word, since it does not end anything.
    match vocab.get(word) {
        Some(id) => id.0,
        None => WordId::from(vocab.len()).0 + extra.intern(word),
    }
}

/// Reads a whole source into `sink`. Fails if it contains no words.
fn encode(
    source: &mut impl Source,
    preprocessing: &Preprocessing,
    cleaning: &Cleaning,
    numbering: &mut Numbering<'_>,
    sink: &mut impl Sink,
) -> Result<(), ReadError> {
    let (mut n_words, mut n_bytes) = (0, 0);
    let watch = source.watch().cloned();
    while let Some(mut blocks) = source.next()? {
        loop {
            // A few blocks per thread keep all threads busy, whatever the size of the file. Blocks of
            // long records are larger, so the limit is a number of bytes.
            let (mut batch, mut batch_bytes) = (Vec::new(), 0);
            let enough = 4 * rayon::current_num_threads() * BLOCK_BYTES;
            while batch_bytes < enough {
                let Some(block) = blocks.next()? else { break };
                batch_bytes += block.len();
                batch.push(block);
            }
            if batch.is_empty() {
                break;
            }
            n_bytes += batch_bytes as u64;
            let fixed = numbering.fixed();
            let encoded: Vec<Result<EncodedBlock, ReadError>> = batch
                .into_par_iter()
                .map(|block| EncodedBlock::of(&block, preprocessing, cleaning, fixed))
                .collect();
            for block in encoded {
                let block = block?;
                n_words += block.n_words;
                block.send(numbering, sink)?;
            }
            if let Some(watch) = &watch {
                watch.report(n_bytes);
            }
        }
        sink.end_of_file()?;
    }
    if n_words == 0 {
        return Err(ReadError::NoWords { files: source.names() });
    }
    Ok(())
}

/// The words and records of one block, in numbers of its own.
struct EncodedBlock {
    /// Number of words before cleaning.
    n_words: usize,
    numbers: Vec<u32>,
    /// End of each record in `numbers`.
    ends: Vec<usize>,
    /// Names of each record up to the last one that has any.
    names: Vec<RecordNames>,
    /// The words that `numbers` refer to, unless the numbers are final.
    words: StringTable,
}

impl EncodedBlock {
    fn of(
        block: &Block,
        preprocessing: &Preprocessing,
        cleaning: &Cleaning,
        fixed: Option<&Vocab>,
    ) -> Result<EncodedBlock, ReadError> {
        let mut encoded = EncodedBlock {
            n_words: 0,
            numbers: Vec::new(),
            ends: Vec::new(),
            names: Vec::new(),
            words: StringTable::default(),
        };
        let EncodedBlock { n_words, numbers, ends, names, words } = &mut encoded;
        let is_clean = cleaning.is_empty();
        block.records(|record| {
            let before = numbers.len();
            match fixed {
                _ if !is_clean => {
                    *n_words += each_clean_word(&record, preprocessing, cleaning, |word| {
                        let number = |vocab: &Vocab| vocab.id(word).0;
                        numbers.push(fixed.map_or_else(|| words.intern(word), number));
                    });
                }
                Some(vocab) => {
                    each_word(&record, preprocessing, |word| numbers.push(vocab.id(word).0));
                }
                None => each_word(&record, preprocessing, |word| numbers.push(words.intern(word))),
            }
            if is_clean {
                *n_words += numbers.len() - before;
            }
            ends.push(numbers.len());
            let of_record = RecordNames {
                label: record.label.into_owned(),
                split: record.split.into_owned(),
                id: record.id.into_owned(),
                kept: record.kept,
            };
            if of_record != RecordNames::default() {
                names.resize(ends.len(), RecordNames::default());
                names[ends.len() - 1] = of_record;
            }
        })?;
        Ok(encoded)
    }

    fn send(
        mut self,
        numbering: &mut Numbering<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), ReadError> {
        if numbering.fixed().is_none() {
            let translation: Vec<u32> =
                self.words.iter().map(|word| numbering.number(word)).collect();
            for number in &mut self.numbers {
                *number = translation[*number as usize];
            }
        }
        let (mut begin, unnamed) = (0, RecordNames::default());
        for (record_idx, &end) in self.ends.iter().enumerate() {
            let names = self.names.get(record_idx).unwrap_or(&unnamed);
            sink.record(EncodedRecord { words: &self.numbers[begin..end], names })?;
            begin = end;
        }
        Ok(())
    }
}

/// Calls `visit` with each normalized word of a record.
fn each_word(record: &Record<'_>, preprocessing: &Preprocessing, mut visit: impl FnMut(&str)) {
    match &record.text {
        Text::Raw(text) => preprocessing.words(text, visit),
        Text::Tokens(tokens) if record.is_final => tokens.iter().for_each(|token| visit(token)),
        Text::Tokens(tokens) => {
            tokens.iter().for_each(|token| visit(&preprocessing.normalize_word(token)));
        }
    }
}

/// Calls `visit` with the words of a record that cleaning leaves. Returns the number of words before.
fn each_clean_word(
    record: &Record<'_>,
    preprocessing: &Preprocessing,
    cleaning: &Cleaning,
    visit: impl FnMut(&str),
) -> usize {
    let mut words = Vec::new();
    each_word(record, preprocessing, |word| words.push(word.to_owned()));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    cleaning.clean(&words, visit);
    words.len()
}

/// End-of-sentence marker among provisional numbers. No word has this number.
pub(crate) const END: u32 = u32::MAX;

/// Counts words by number. `counts` grows to the largest number.
pub(crate) fn count_words(counts: &mut Vec<u64>, numbers: &[u32]) {
    for &number in numbers {
        let number = number as usize;
        if number >= counts.len() {
            counts.resize(number + 1, 0);
        }
        counts[number] += 1;
    }
}

/// Learns the vocabulary from provisional numbers, as far as they are `kept`. Returns it with the final id
/// of each number.
pub(crate) fn settle(
    seen: &StringTable,
    counts: &[u64],
    n_sentences: u64,
    limits: &VocabLimits,
    kept: impl Fn(usize) -> bool,
) -> (Vocab, Vec<WordId>) {
    // The characters `<eos>` in a text are an unknown word, not the end of a sentence.
    let words = seen.iter().zip(counts.iter().copied()).enumerate();
    let words = words.filter(|&(number, _)| kept(number)).map(|(_, word)| word);
    let words = words.map(|(word, count)| (if word == EOS { UNK } else { word }, count));
    let vocab = Vocab::from_counts(words.chain([(EOS, n_sentences)]), limits);
    let ids = seen.iter().map(|word| vocab.id(word)).collect();
    (vocab, ids)
}
