//! Words and their vectors, gathered one after the other as a file has them.

use super::error::VectorsError;
use crate::words::WordVectors;
use latens_corpus::{EOS, Lexicon, Preprocessing, UNK, Vocab, VocabLimits};
use latens_store::StringTable;

/// The vectors read so far. `<unk>` and `<eos>` have the first two places, whether they come or not.
pub(super) struct Entries {
    /// What errors count: lines, or vectors.
    unit: &'static str,
    dim: usize,
    words: StringTable,
    /// Where each word stood; 0 for those that did not come.
    numbers: Vec<u64>,
    /// How many came.
    len: u64,
    values: Vec<f32>,
}

impl Entries {
    pub(super) fn new(unit: &'static str, dim: usize) -> Entries {
        let words = StringTable::from_iter([UNK, EOS]);
        Entries { unit, dim, words, numbers: vec![0; 2], len: 0, values: vec![0.0; 2 * dim] }
    }

    /// How many numbers a vector has.
    pub(super) fn dim(&self) -> usize {
        self.dim
    }

    pub(super) fn error(&self, number: u64, problem: impl Into<String>) -> VectorsError {
        VectorsError::Entry { unit: self.unit, number, problem: problem.into() }
    }

    /// Adds the word of the given line or vector, and gives the place for its numbers.
    pub(super) fn word(&mut self, number: u64, word: &[u8]) -> Result<&mut [f32], VectorsError> {
        let Ok(word) = std::str::from_utf8(word) else {
            let word = String::from_utf8_lossy(word);
            return Err(self.error(number, format!("the word `{word}` is not UTF-8")));
        };
        if word.is_empty() {
            return Err(self.error(number, "there is no word"));
        }
        let id = self.words.intern(word) as usize;
        if id == self.numbers.len() {
            self.numbers.push(0);
            self.values.resize(self.values.len() + self.dim, 0.0);
        }
        if self.numbers[id] != 0 {
            let (unit, first) = (self.unit, self.numbers[id]);
            let problem = format!("the word `{word}` comes twice, first in {unit} {first}");
            return Err(self.error(number, problem));
        }
        self.numbers[id] = number;
        self.len += 1;
        Ok(&mut self.values[id * self.dim..][..self.dim])
    }

    /// How many words came.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// The words as a vocabulary without counts, and their vectors.
    pub(super) fn finish(
        self,
        preprocessing: &Preprocessing,
    ) -> Result<(Lexicon, WordVectors), VectorsError> {
        if self.len == 0 {
            return Err(VectorsError::Empty);
        }
        self.check_finite()?;
        let vectors = WordVectors::new(self.dim, self.values).expect("all numbers are finite");
        let counts = vec![0; self.words.len()];
        let vocab = Vocab::from_parts(self.words.iter(), counts).expect("no word comes twice");
        let limits = VocabLimits::default();
        Ok((Lexicon { preprocessing: *preprocessing, limits, vocab }, vectors))
    }

    fn check_finite(&self) -> Result<(), VectorsError> {
        let Some(bad) = self.values.iter().position(|value| !value.is_finite()) else {
            return Ok(());
        };
        let (id, column) = (bad / self.dim, bad % self.dim + 1);
        let (word, value) = (self.words.get(id as u32), self.values[bad]);
        let problem = format!("number {column} of the word `{word}` is {value}, not finite");
        Err(self.error(self.numbers[id], problem))
    }
}
