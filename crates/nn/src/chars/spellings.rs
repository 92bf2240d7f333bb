//! Words as sequences of characters.

/// Spellings of words as packed sequences of characters.
///
/// The characters of word i are those from `offsets[i]` up to `offsets[i + 1]`.
#[derive(Clone, Copy, Debug)]
pub struct Spellings<'a> {
    /// Characters of all words, as rows of the table of characters.
    pub chars: &'a [u32],
    /// Start of each word, followed by the end of the last one.
    pub offsets: &'a [usize],
}

impl<'a> Spellings<'a> {
    /// Number of words.
    pub(crate) fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Returns the characters of word `idx`.
    #[inline(always)]
    pub(crate) fn word(&self, idx: usize) -> &'a [u32] {
        &self.chars[self.offsets[idx]..self.offsets[idx + 1]]
    }
}
