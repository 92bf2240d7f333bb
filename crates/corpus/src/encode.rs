//! The one pass from text to word numbers, shared by sentences and documents.
//!
//! Blocks of the text go to all threads, each of which numbers the words of its block by itself;
//! the blocks' own numbers are then translated in order. A vocabulary that is still to be learned
//! gets provisional numbers in the order of first sight, and the final ones, by frequency, when all
//! has been read: the text is read once.

use crate::error::ReadError;
use crate::input::{Block, Inputs};
use crate::preprocessing::Preprocessing;
use crate::records::{Record, Text};
use crate::vocab::{UNK, Vocab};
use crate::word::WordId;
use latens_store::StringTable;
use rayon::prelude::*;

/// What one record becomes.
pub(crate) struct EncodedRecord<'a> {
    /// Its words, in the numbers of the [`Numbering`].
    pub(crate) words: &'a [u32],
    pub(crate) label: &'a str,
    pub(crate) split: &'a str,
}

/// Who takes the encoded records.
pub(crate) trait Sink {
    /// Takes the next record of the present file.
    fn record(&mut self, record: EncodedRecord<'_>) -> Result<(), ReadError>;
    /// The present file is at its end.
    fn end_of_file(&mut self) -> Result<(), ReadError>;
}

/// How words get their numbers.
pub(crate) enum Numbering<'a> {
    /// The ids of a vocabulary; what it lacks is [`WordId::UNK`].
    Fixed(&'a Vocab),
    /// The ids of a vocabulary; what it lacks is numbered on from there.
    Growing(&'a Vocab, StringTable),
    /// Provisional numbers in the order of first sight.
    Learned(StringTable),
}

/// The words and records of one block, in numbers of its own.
struct EncodedBlock {
    numbers: Vec<u32>,
    /// Where each record ends among `numbers`.
    ends: Vec<usize>,
    labels: Vec<(String, String)>,
    /// The words behind `numbers`, unless these are final.
    words: StringTable,
}

/// Reads all inputs into `sink`. Fails if there is not a single word in them.
pub(crate) fn encode(
    inputs: &Inputs,
    preprocessing: &Preprocessing,
    numbering: &mut Numbering<'_>,
    sink: &mut impl Sink,
) -> Result<(), ReadError> {
    let (mut n_words, mut n_bytes) = (0, 0);
    for file_idx in 0..inputs.paths.len() {
        let mut blocks = inputs.open(file_idx)?;
        loop {
            // A few blocks a thread at a time keep all busy, whatever the size of the file.
            let mut batch = Vec::new();
            while batch.len() < 4 * rayon::current_num_threads() {
                let Some(block) = blocks.next()? else { break };
                batch.push(block);
            }
            if batch.is_empty() {
                break;
            }
            n_bytes += batch.iter().map(|block| block.len() as u64).sum::<u64>();
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
            if let Some(watch) = &inputs.watch {
                watch.report(n_bytes);
            }
        }
        sink.end_of_file()?;
    }
    if n_words == 0 {
        return Err(ReadError::NoWords { files: inputs.names() });
    }
    Ok(())
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
            // `<unk>` in a text is no new word; `<eos>` is, since it is not the end of anything.
            Numbering::Growing(vocab, extra) => match vocab.get(word) {
                Some(id) => id.0,
                None => WordId::from(vocab.len()).0 + extra.intern(word),
            },
            Numbering::Learned(words) => words.intern(word),
        }
    }
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

/// Hands each word of a record to `visit`, as it is looked up.
fn each_word(record: &Record<'_>, preprocessing: &Preprocessing, mut visit: impl FnMut(&str)) {
    match &record.text {
        Text::Raw(text) => preprocessing.words(text, visit),
        Text::Tokens(tokens) => {
            tokens.iter().for_each(|token| visit(&preprocessing.normalize(token)));
        }
    }
}

/// The vocabulary of the words seen, and the final id of each provisional number.
pub(crate) fn settle(
    seen: &StringTable,
    counts: &[u64],
    n_sentences: u64,
    limits: &crate::vocab::VocabLimits,
) -> (Vocab, Vec<WordId>) {
    // The letters `<eos>` in a text are no end of sentence, but an unknown word.
    let words = seen.iter().zip(counts.iter().copied());
    let words =
        words.map(|(word, count)| (if word == crate::vocab::EOS { UNK } else { word }, count));
    let vocab = Vocab::from_counts(words.chain([(crate::vocab::EOS, n_sentences)]), limits);
    let ids = seen.iter().map(|word| vocab.id(word)).collect();
    (vocab, ids)
}
