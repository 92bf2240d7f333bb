use bytemuck::{Pod, Zeroable};

/// The number of a word in one [`Vocab`](crate::Vocab); it means nothing outside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct WordId(pub u32);

impl WordId {
    /// The word that stands for every word the vocabulary lacks, written `<unk>`.
    pub const UNK: WordId = WordId(0);
    /// The end of a sentence, written `<eos>`.
    pub const EOS: WordId = WordId(1);

    /// The id as a position in an array with one entry a word.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl From<usize> for WordId {
    /// # Panics
    /// If `index` needs more than 32 bits.
    fn from(index: usize) -> Self {
        WordId(u32::try_from(index).expect("a vocabulary has fewer than 2^32 words"))
    }
}
