//! The single pass from text to word numbers, shared by sentences and documents.
//!
//! All threads take blocks of the text, and each thread numbers the words of its block on its own.
//! These numbers are then translated block by block, in order. While the vocabulary is unknown, words
//! get provisional numbers in the order of their first occurrence; the final ids, by frequency, follow
//! at the end. The text is therefore read only once.

use crate::error::ReadError;
use crate::input::blocks::{BLOCK_BYTES, Block};
use crate::input::records::{Record, Text};
use crate::input::source::Source;
use crate::words::lexicon::Lexicon;
use crate::words::preprocessing::Preprocessing;
use crate::words::vocab::{EOS, UNK, Vocab, VocabLimits};
use crate::words::word_id::WordId;
use latens_store::StringTable;
use rayon::prelude::*;

/// An encoded sentence or document.
pub(crate) struct EncodedRecord<'a> {
    pub(crate) words: &'a [u32],
    pub(crate) label: &'a str,
    pub(crate) split: &'a str,
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
    encode(source, preprocessing, &mut Numbering::Learned(&mut seen), sink)?;
    Ok(seen)
}

/// Encodes a text with a known vocabulary; all other words become [`WordId::UNK`].
pub(crate) fn encode_known_words(
    source: &mut impl Source,
    lexicon: &Lexicon,
    sink: &mut impl Sink,
) -> Result<(), ReadError> {
    encode(source, &lexicon.preprocessing, &mut Numbering::Fixed(&lexicon.vocab), sink)
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
    encode(source, &lexicon.preprocessing, &mut numbering, sink)?;
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
                .map(|block| EncodedBlock::of(&block, preprocessing, fixed))
                .collect();
            for block in encoded {
                let block = block?;
                n_words += block.numbers.len();
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
    numbers: Vec<u32>,
    /// End of each record in `numbers`.
    ends: Vec<usize>,
    /// Label and split of each record up to the last one that has any.
    labels: Vec<(String, String)>,
    /// The words that `numbers` refer to, unless the numbers are final.
    words: StringTable,
}

impl EncodedBlock {
    fn of(
        block: &Block,
        preprocessing: &Preprocessing,
        fixed: Option<&Vocab>,
    ) -> Result<EncodedBlock, ReadError> {
        let mut encoded = EncodedBlock {
            numbers: Vec::new(),
            ends: Vec::new(),
            labels: Vec::new(),
            words: StringTable::default(),
        };
        let EncodedBlock { numbers, ends, labels, words } = &mut encoded;
        block.records(|record| {
            match fixed {
                Some(vocab) => {
                    each_word(&record, preprocessing, |word| numbers.push(vocab.id(word).0));
                }
                None => each_word(&record, preprocessing, |word| numbers.push(words.intern(word))),
            }
            ends.push(numbers.len());
            if !record.label.is_empty() || !record.split.is_empty() {
                labels.resize(ends.len(), Default::default());
                labels[ends.len() - 1] = (record.label.into_owned(), record.split.into_owned());
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
        let mut begin = 0;
        for (record_idx, &end) in self.ends.iter().enumerate() {
            let (label, split) =
                self.labels.get(record_idx).map_or(("", ""), |(label, split)| (label, split));
            sink.record(EncodedRecord { words: &self.numbers[begin..end], label, split })?;
            begin = end;
        }
        Ok(())
    }
}

/// Calls `visit` with each normalized word of a record.
fn each_word(record: &Record<'_>, preprocessing: &Preprocessing, mut visit: impl FnMut(&str)) {
    match &record.text {
        Text::Raw(text) => preprocessing.words(text, visit),
        Text::Tokens(tokens) => {
            tokens.iter().for_each(|token| visit(&preprocessing.normalize(token)));
        }
    }
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

/// Learns the vocabulary from provisional numbers. Returns it with the final id of each number.
pub(crate) fn settle(
    seen: &StringTable,
    counts: &[u64],
    n_sentences: u64,
    limits: &VocabLimits,
) -> (Vocab, Vec<WordId>) {
    // The characters `<eos>` in a text are an unknown word, not the end of a sentence.
    let words = seen.iter().zip(counts.iter().copied());
    let words = words.map(|(word, count)| (if word == EOS { UNK } else { word }, count));
    let vocab = Vocab::from_counts(words.chain([(EOS, n_sentences)]), limits);
    let ids = seen.iter().map(|word| vocab.id(word)).collect();
    (vocab, ids)
}
