//! The types of Gaussian LDA: the words that have a vector.

use super::gaussian::vectors::TypeVectors;
use latens_corpus::WordId;
use latens_model::WordVectors;

/// The mapping between words and types.
#[derive(Clone, Debug)]
pub(crate) struct Types {
    /// The type of each word of the vocabulary, or [`NONE`].
    of_word: Vec<u32>,
    /// The word of each type.
    pub(crate) words: Vec<WordId>,
}

const NONE: u32 = u32::MAX;

impl Types {
    pub(crate) fn new(vectors: &WordVectors) -> (Types, TypeVectors) {
        let mut types = Types { of_word: vec![NONE; vectors.n_words()], words: Vec::new() };
        let mut values = Vec::new();
        for (word, vector) in vectors.iter().filter(|&(word, _)| word > WordId::EOS) {
            types.of_word[word.index()] = types.words.len() as u32;
            types.words.push(word);
            values.extend_from_slice(vector);
        }
        (types, TypeVectors::new(vectors.dim(), values))
    }

    /// The type of a word, or `None` if it has no vector or is not in the vocabulary.
    pub(crate) fn of(&self, word: WordId) -> Option<u32> {
        self.of_word.get(word.index()).copied().filter(|&token_type| token_type != NONE)
    }

    pub(crate) fn len(&self) -> usize {
        self.words.len()
    }
}
