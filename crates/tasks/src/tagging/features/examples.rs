//! A training text in the form that learners use: tag indices, attribute groups, rows of encoders.

use super::lexical::Lexical;
use super::rows::Rows;
use std::ops::Range;

/// The features and tags of all tokens of a text.
pub(crate) struct Examples {
    pub(crate) n_tags: usize,
    /// End of each sentence, as a token index.
    pub(crate) ends: Vec<usize>,
    /// The tag of each token.
    pub(crate) tags: Vec<u16>,
    /// Whether each token contributes to the loss.
    pub(crate) counts: Vec<bool>,
    pub(crate) lexical: Lexical,
    /// The rows of each encoder.
    pub(crate) blocks: Vec<Rows>,
    /// Number of tokens on either side whose rows are features of a token.
    pub(crate) window: usize,
}

impl Examples {
    pub(crate) fn n_tokens(&self) -> usize {
        self.tags.len()
    }

    pub(crate) fn sentence(&self, sentence: usize) -> Range<usize> {
        let begin = if sentence == 0 { 0 } else { self.ends[sentence - 1] };
        begin..self.ends[sentence]
    }

    /// Splits the sentences into shards of at least `n_tokens` tokens. The split depends on the text alone.
    pub(crate) fn shards(&self, n_tokens: usize) -> Vec<Range<usize>> {
        let (mut shards, mut begin) = (Vec::new(), 0);
        for sentence in 0..self.ends.len() {
            let first = self.sentence(begin).start;
            if self.ends[sentence] - first >= n_tokens || sentence + 1 == self.ends.len() {
                shards.push(begin..sentence + 1);
                begin = sentence + 1;
            }
        }
        shards
    }
}
