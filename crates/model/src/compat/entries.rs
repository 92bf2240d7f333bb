//! Collects words and their vectors while a file is read.

use super::error::VectorsError;
use crate::words::WordVectors;
use latens_corpus::{EOS, Lexicon, Preprocessing, UNK, Vocab, VocabLimits};
use latens_store::StringTable;

/// The vectors read so far. `<unk>` and `<eos>` always have the first two ids.
pub(super) struct Entries {
    /// The unit in error messages: `line` or `vector`.
    unit: &'static str,
    dim: usize,
    words: StringTable,
    /// One-based line or vector number of each word, or 0 if the word has not been read.
    numbers: Vec<u64>,
    /// Number of words read.
    len: u64,
    values: Vec<f32>,
}

impl Entries {
    pub(super) fn new(unit: &'static str, dim: usize) -> Entries {
        let words = StringTable::from_iter([UNK, EOS]);
        Entries { unit, dim, words, numbers: vec![0; 2], len: 0, values: vec![0.0; 2 * dim] }
    }

    /// Dimension of the vectors.
    pub(super) fn dim(&self) -> usize {
        self.dim
    }

    pub(super) fn error(&self, number: u64, problem: impl Into<String>) -> VectorsError {
        VectorsError::Entry { unit: self.unit, number, problem: problem.into() }
    }

    /// Adds the word of the given line or vector. Returns the slice for its values.
    pub(super) fn word(&mut self, number: u64, word: &[u8]) -> Result<&mut [f32], VectorsError> {
        let Ok(word) = std::str::from_utf8(word) else {
            let word = String::from_utf8_lossy(word);
            return Err(self.error(number, format!("the word `{word}` is not UTF-8")));
        };
        if word.is_empty() {
            return Err(self.error(number, "the word is missing"));
        }
        let id = self.words.intern(word) as usize;
        if id == self.numbers.len() {
            self.numbers.push(0);
            self.values.resize(self.values.len() + self.dim, 0.0);
        }
        if self.numbers[id] != 0 {
            let (unit, first) = (self.unit, self.numbers[id]);
            let problem = format!("duplicate word `{word}`, first in {unit} {first}");
            return Err(self.error(number, problem));
        }
        self.numbers[id] = number;
        self.len += 1;
        Ok(&mut self.values[id * self.dim..][..self.dim])
    }

    /// Number of words read.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Returns the words as a vocabulary without counts, and their vectors.
    pub(super) fn finish(
        self,
        preprocessing: &Preprocessing,
    ) -> Result<(Lexicon, WordVectors), VectorsError> {
        if self.len == 0 {
            return Err(VectorsError::Empty);
        }
        self.check_finite()?;
        let vectors = WordVectors::new(self.dim, self.values).expect("all values are finite");
        let counts = vec![0; self.words.len()];
        let vocab = Vocab::from_parts(self.words.iter(), counts).expect("all words are unique");
        let limits = VocabLimits::default();
        Ok((Lexicon::new(*preprocessing, limits, vocab), vectors))
    }

    fn check_finite(&self) -> Result<(), VectorsError> {
        let Some(bad) = self.values.iter().position(|value| !value.is_finite()) else {
            return Ok(());
        };
        let (id, column) = (bad / self.dim, bad % self.dim + 1);
        let (word, value) = (self.words.get(id as u32), self.values[bad]);
        let problem = format!("value {column} of the word `{word}` is {value}, must be finite");
        Err(self.error(self.numbers[id], problem))
    }
}
