//! The probability that is set aside for unknown words.

/// The probability of unknown words in a model with character-based word vectors that has never seen `<unk>`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct UnknownShare {
    /// The slot of `<unk>`, which stands for all unknown words. No state emits it during training.
    pub(crate) slot: usize,
    /// The total probability of unknown words, given a state that emits them: n₁ / (n + n₁), where n₁ of the
    /// n tokens of the cluster are words with a count of 1, that is, words that were new when they occurred
    /// (Good–Turing). It is fixed, so that models are comparable on text with unknown words.
    pub(crate) share: f64,
}

impl UnknownShare {
    /// The share for the `<unk>` of a slot, from the counts of the words in its cluster.
    pub(crate) fn new(slot: usize, counts: impl Iterator<Item = u64>) -> UnknownShare {
        let (mut n, mut once) = (0u64, 0u64);
        counts.for_each(|count| {
            // A forged file may contain any numbers.
            n = n.saturating_add(count);
            once += u64::from(count == 1);
        });
        UnknownShare { slot, share: once as f64 / (n as f64 + once as f64).max(1.0) }
    }
}
