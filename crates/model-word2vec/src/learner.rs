//! Vectors under training and everything else that all threads share.

use crate::negatives::Negatives;
use crate::params::Word2vecParams;
use crate::text::{blocks, counts, keep_probs};
use latens_corpus::{Corpus, WordId};
use latens_math::Rng;
use latens_math::hogwild::SharedRows;
use std::ops::Range;

/// The learning rate never falls below this share of its initial value, as in the original program.
const LAST_RATE: f64 = 1e-4;

/// State that all threads share.
pub(crate) struct Learner<'a> {
    pub(crate) params: &'a Word2vecParams,
    corpus: &'a Corpus,
    /// Number of occurrences of each word in the text; 0 for `<eos>`.
    pub(crate) counts: Vec<u64>,
    pub(crate) keep_probs: Vec<f64>,
    pub(crate) negatives: Negatives,
    blocks: Vec<Range<usize>>,
    /// Vectors of context words: the result of training.
    pub(crate) inputs: SharedRows,
    /// Vectors of predicted words.
    pub(crate) outputs: SharedRows,
}

impl<'a> Learner<'a> {
    /// # Panics
    /// If `inputs` or `outputs` does not have one row per word, or if the text has no words.
    pub(crate) fn new(
        params: &'a Word2vecParams,
        corpus: &'a Corpus,
        inputs: &[f32],
        outputs: &[f32],
    ) -> Learner<'a> {
        let counts = counts(&corpus.sentences, corpus.lexicon.vocab.len());
        Learner::with_counts(params, corpus, counts, inputs, outputs)
    }

    /// A learner of a part of a text, given the counts of the whole text.
    pub(crate) fn with_counts(
        params: &'a Word2vecParams,
        corpus: &'a Corpus,
        counts: Vec<u64>,
        inputs: &[f32],
        outputs: &[f32],
    ) -> Learner<'a> {
        assert_eq!(
            [inputs.len(), outputs.len()],
            [counts.len() * params.dim; 2],
            "one row per word"
        );
        Learner {
            params,
            corpus,
            keep_probs: keep_probs(&counts, params.subsample),
            negatives: Negatives::new(&counts, params.noise_power),
            blocks: blocks(&corpus.sentences),
            inputs: SharedRows::new(inputs, params.dim),
            outputs: SharedRows::new(outputs, params.dim),
            counts,
        }
    }

    /// Initial vectors: small random inputs, and outputs of zero.
    pub(crate) fn first_rows(params: &Word2vecParams, n_words: usize) -> [Vec<f32>; 2] {
        let (n, dim) = (n_words * params.dim, params.dim as f64);
        // No block of any epoch uses this stream.
        let mut rng = Rng::stream(params.seed, u64::MAX);
        let inputs = (0..n).map(|_| ((rng.uniform() - 0.5) / dim) as f32).collect();
        [inputs, vec![0.0; n]]
    }

    pub(crate) fn n_blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Number of tokens, over all epochs, before a block of an epoch; both are counted from 0.
    pub(crate) fn n_tokens_before(&self, epoch: usize, block: usize) -> usize {
        let n_tokens = self.corpus.sentences.n_tokens();
        epoch * n_tokens + self.blocks.get(block).map_or(n_tokens, |block| block.start)
    }

    /// Tokens of a block.
    pub(crate) fn tokens(&self, block: usize) -> &[WordId] {
        &self.corpus.sentences.tokens()[self.blocks[block].clone()]
    }

    /// Random stream of a block of an epoch.
    pub(crate) fn rng(&self, epoch: usize, block: usize) -> Rng {
        let stream = (epoch * self.n_blocks() + block) as u64;
        Rng::stream(self.params.seed, stream)
    }

    /// Learning rate for a block of an epoch.
    pub(crate) fn rate(&self, epoch: usize, block: usize) -> f32 {
        let total = self.params.epochs * self.corpus.sentences.n_tokens();
        let left = 1.0 - self.n_tokens_before(epoch, block) as f64 / total as f64;
        (self.params.learning_rate * left.max(LAST_RATE)) as f32
    }
}
