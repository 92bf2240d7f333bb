//! A batch of sentences.

use latens_corpus::WordId;

/// Sentences that are processed together, optionally with one tag per word (but none for `<eos>`).
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch<'a> {
    pub(crate) sentences: Vec<&'a [WordId]>,
    pub(crate) tags: Vec<&'a [u32]>,
}

impl Batch<'_> {
    /// The number of tokens of all sentences.
    pub(crate) fn n_tokens(&self) -> usize {
        self.sentences.iter().map(|sentence| sentence.len()).sum()
    }
}
