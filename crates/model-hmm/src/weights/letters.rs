//! Words as sequences of symbols, one per character.

use latens_corpus::{EOS, UNK};
use latens_nn::Spellings;
use std::collections::BTreeSet;

/// The spellings of words as sequences of symbols.
///
/// A character is a Unicode scalar value. The alphabet is the sorted set of the characters of the words themselves, so
/// that a model file does not store it. `<unk>` and `<eos>` are one symbol each.
pub(crate) struct Letters {
    /// In ascending order.
    alphabet: Vec<char>,
    chars: Vec<u32>,
    offsets: Vec<usize>,
}

const UNK_SYMBOL: u32 = 0;
const EOS_SYMBOL: u32 = 1;
const FIRST_LETTER: u32 = 2;

impl Letters {
    /// The spellings of some words.
    pub(crate) fn new(words: &[&str]) -> Letters {
        let spelled = words.iter().filter(|&&word| word != UNK && word != EOS);
        let alphabet: BTreeSet<char> = spelled.flat_map(|word| word.chars()).collect();
        let mut letters = Letters {
            alphabet: alphabet.into_iter().collect(),
            chars: Vec::new(),
            offsets: vec![0],
        };
        for word in words {
            let symbols = letters.symbols_of(word);
            letters.chars.extend(symbols);
            letters.offsets.push(letters.chars.len());
        }
        letters
    }

    /// The number of distinct symbols.
    pub(crate) fn n_symbols(&self) -> usize {
        FIRST_LETTER as usize + self.alphabet.len()
    }

    /// The number of words.
    pub(crate) fn n_words(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The symbols of all words.
    pub(crate) fn spellings(&self) -> Spellings<'_> {
        Spellings { chars: &self.chars, offsets: &self.offsets }
    }

    /// The symbols of any word, without characters that are not in the alphabet.
    pub(crate) fn symbols_of(&self, word: &str) -> Vec<u32> {
        let idx = |letter: char| self.alphabet.binary_search(&letter).ok();
        match word {
            UNK => vec![UNK_SYMBOL],
            EOS => vec![EOS_SYMBOL],
            word => word.chars().filter_map(idx).map(|i| FIRST_LETTER + i as u32).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_into_characters_and_special_words_are_not() {
        let letters = Letters::new(&["ba", EOS, "née", UNK, "a"]);
        assert_eq!(letters.n_symbols(), 2 + 5);
        assert_eq!(letters.n_words(), 5);
        let Spellings { chars, offsets } = letters.spellings();
        assert_eq!(offsets, [0, 2, 3, 6, 7, 8]);
        assert_eq!(chars, [3, 2, 1, 5, 6, 4, 0, 2]);
        assert_eq!(letters.symbols_of("abx"), [2, 3]);
    }
}
