//! Large samples of text from a language model.

use std::ops::ControlFlow;

/// How much text to draw: a number of independent texts of the same length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SampleSize {
    /// Number of texts. Networks draw all of them at once.
    pub n_texts: usize,
    /// Number of tokens of each text, in which ends of sentences count.
    pub n_tokens: usize,
}

impl SampleSize {
    /// Texts of equal length, with about `n_tokens` tokens in total.
    pub fn of_tokens(n_tokens: usize, n_texts: usize) -> SampleSize {
        let n_texts = n_texts.clamp(1, n_tokens.max(1));
        SampleSize { n_texts, n_tokens: n_tokens.div_ceil(n_texts) }
    }

    /// Number of tokens of all texts.
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
        assert_eq!(SampleSize::of_tokens(100, 8), SampleSize { n_texts: 8, n_tokens: 13 });
        assert_eq!(SampleSize::of_tokens(3, 8).total(), 3);
        assert_eq!(SampleSize::of_tokens(0, 8).total(), 0);
    }
}
