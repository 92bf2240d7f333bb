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
}

impl Lexicon {
    /// Returns the ids of the words of one sentence, without an end-of-sentence token.
    pub fn ids(&self, sentence: &str) -> Vec<WordId> {
        let mut ids = Vec::new();
        self.preprocessing.words(sentence, |word| ids.push(self.vocab.id(word)));
        ids
    }
}
