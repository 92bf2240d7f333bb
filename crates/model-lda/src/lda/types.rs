//! The types of LDA: the words that topics can contain.

use latens_corpus::WordId;

/// The type of a word. All words of the vocabulary except `<unk>` and `<eos>` are types.
pub(super) fn type_of(word: WordId, n_words: usize) -> Option<u32> {
    (word > WordId::EOS && word.index() < n_words).then_some(word.0)
}
