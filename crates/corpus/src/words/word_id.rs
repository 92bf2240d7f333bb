use bytemuck::{Pod, Zeroable};

/// Number of a word in one [`Vocab`](crate::Vocab); it has no meaning outside of that vocabulary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct WordId(pub u32);

impl WordId {
    /// The unknown word `<unk>`, which replaces every word that the vocabulary lacks.
    pub const UNK: WordId = WordId(0);
    /// The end-of-sentence token `<eos>`.
    pub const EOS: WordId = WordId(1);

    /// The id as an index into an array with one entry per word.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl From<usize> for WordId {
    /// # Panics
    /// If `index` does not fit in 32 bits.
    fn from(index: usize) -> Self {
        WordId(u32::try_from(index).expect("a vocabulary has fewer than 2^32 words"))
    }
}
