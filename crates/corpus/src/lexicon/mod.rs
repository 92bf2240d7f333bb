//! The lexicon: preprocessing, vocabulary and cleaning, and the vocabulary file.

mod vocab_file;

use crate::cleaning::rules::Cleaning;
use crate::words::preprocessing::Preprocessing;
use crate::words::vocab::{Vocab, VocabLimits};
use crate::words::word_id::WordId;

/// Maps text to word ids: preprocessing and vocabulary. Every model carries its own.
#[derive(Clone, Debug)]
pub struct Lexicon {
    /// How text is split into words and how words are normalized.
    pub preprocessing: Preprocessing,
    /// Limits that were applied when the vocabulary was learned.
    pub limits: VocabLimits,
    /// The words and their ids.
    pub vocab: Vocab,
    /// Which words of documents are left out, and which are joined to phrases.
    pub cleaning: Cleaning,
}

impl Lexicon {
    /// A lexicon without cleaning.
    pub fn new(preprocessing: Preprocessing, limits: VocabLimits, vocab: Vocab) -> Lexicon {
        Lexicon { preprocessing, limits, vocab, cleaning: Cleaning::default() }
    }

    /// Returns the ids of the words of one sentence, without an end-of-sentence token.
    pub fn ids(&self, sentence: &str) -> Vec<WordId> {
        let mut ids = Vec::new();
        self.words(sentence, |word| ids.push(self.vocab.id(word)));
        ids
    }

    /// Calls `visit` with each word of a text, normalized and cleaned.
    pub fn words(&self, text: &str, mut visit: impl FnMut(&str)) {
        if self.cleaning.is_empty() {
            return self.preprocessing.words(text, visit);
        }
        let mut words = Vec::new();
        self.preprocessing.words(text, |word| words.push(word.to_owned()));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.cleaning.clean(&words, &mut visit);
    }
}
