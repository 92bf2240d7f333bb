//! Large samples of text from a language model.

use latens_corpus::WordId;
use std::ops::ControlFlow;

/// How much text to draw: a number of independent texts of the same length, or of single sentences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SampleSize {
    /// Number of texts. Networks draw all of them at once.
    pub n_texts: usize,
    /// Number of tokens of each text, in which ends of sentences count.
    pub n_tokens: usize,
    /// Whether a text ends after its first end of sentence, which is its last token then.
    pub ends_at_eos: bool,
    /// Whether `<unk>` is drawn. Otherwise the other words are renormalized.
    pub keep_unk: bool,
}

impl SampleSize {
    /// Texts of equal length, with about `n_tokens` tokens in total.
    pub fn of_tokens(n_tokens: usize, n_texts: usize) -> SampleSize {
        let n_texts = n_texts.clamp(1, n_tokens.max(1));
        let n_tokens = n_tokens.div_ceil(n_texts);
        SampleSize { n_texts, n_tokens, ends_at_eos: false, keep_unk: true }
    }

    /// Single sentences of at most `max_tokens` tokens, in which their ends count.
    pub fn of_sentences(n: usize, max_tokens: usize) -> SampleSize {
        SampleSize { n_texts: n, n_tokens: max_tokens, ends_at_eos: true, keep_unk: true }
    }

    /// Sets [`keep_unk`](field@Self::keep_unk).
    #[must_use]
    pub fn keep_unk(mut self, keep_unk: bool) -> SampleSize {
        self.keep_unk = keep_unk;
        self
    }

    /// Whether a text is complete before it has all tokens.
    pub fn is_complete(&self, text: &[WordId]) -> bool {
        self.ends_at_eos && text.last() == Some(&WordId::EOS)
    }

    /// The largest number of tokens of all texts.
    pub fn total(&self) -> usize {
        self.n_texts * self.n_tokens
    }
}

/// Receives the number of tokens drawn so far, and decides whether to continue.
pub type WatchSample<'a> = dyn FnMut(usize) -> ControlFlow<()> + 'a;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_cover_the_tokens() {
        let size = SampleSize::of_tokens(100, 8);
        assert_eq!(
            (size.n_texts, size.n_tokens, size.ends_at_eos, size.keep_unk),
            (8, 13, false, true)
        );
        assert_eq!(SampleSize::of_tokens(3, 8).total(), 3);
        assert_eq!(SampleSize::of_tokens(0, 8).total(), 0);
    }
}
