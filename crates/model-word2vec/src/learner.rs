//! The vectors while they are learned, and who learns them.

use crate::negatives::Negatives;
use crate::params::Word2vecParams;
use crate::text::{blocks, counts, keep_probs};
use crate::worker::{Loss, Worker};
use latens_corpus::Corpus;
use latens_math::Rng;
use latens_math::hogwild::SharedRows;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The learning rate never falls below this share of the first one, as in the original program.
const LAST_RATE: f64 = 1e-4;

/// What all threads share.
pub(crate) struct Learner<'a> {
    pub(crate) params: &'a Word2vecParams,
    corpus: &'a Corpus,
    /// How often each word stands in the text; ends of sentences never.
    pub(crate) counts: Vec<u64>,
    pub(crate) keep_probs: Vec<f64>,
    pub(crate) negatives: Negatives,
    blocks: Vec<Range<usize>>,
    /// The vectors of words that others are guessed from: the model.
    pub(crate) inputs: SharedRows,
    /// The vectors of words that are guessed.
    pub(crate) outputs: SharedRows,
}

impl<'a> Learner<'a> {
    /// # Panics
    /// If there are not as many numbers as the words need, or no words at all.
    pub(crate) fn new(
        params: &'a Word2vecParams,
        corpus: &'a Corpus,
        inputs: &[f32],
        outputs: &[f32],
    ) -> Learner<'a> {
        let counts = counts(&corpus.sentences, corpus.lexicon.vocab.len());
        assert_eq!([inputs.len(), outputs.len()], [counts.len() * params.dim; 2], "a row a word");
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

    /// The vectors before anything is learned: small random numbers, and zeros.
    pub(crate) fn first_rows(params: &Word2vecParams, n_words: usize) -> [Vec<f32>; 2] {
        let (n, dim) = (n_words * params.dim, params.dim as f64);
        // No block of any epoch has this stream.
        let mut rng = Rng::stream(params.seed, u64::MAX);
        let inputs = (0..n).map(|_| ((rng.uniform() - 0.5) / dim) as f32).collect();
        [inputs, vec![0.0; n]]
    }

    pub(crate) fn n_blocks(&self) -> usize {
        self.blocks.len()
    }

    /// How many tokens come before a block of an epoch, counted from 0, of all epochs.
    pub(crate) fn n_tokens_before(&self, epoch: usize, block: usize) -> usize {
        let n_tokens = self.corpus.sentences.n_tokens();
        epoch * n_tokens + self.blocks.get(block).map_or(n_tokens, |block| block.start)
    }

    /// Learns from some blocks of an epoch, with all threads.
    pub(crate) fn learn(&self, epoch: usize, blocks: Range<usize>) -> Loss {
        let next = AtomicUsize::new(blocks.start);
        let losses = rayon::broadcast(|_| {
            let mut worker = Worker::new(self);
            loop {
                let block = next.fetch_add(1, Ordering::Relaxed);
                if block >= blocks.end {
                    return worker.loss();
                }
                let tokens = &self.corpus.sentences.tokens()[self.blocks[block].clone()];
                let stream = (epoch * self.n_blocks() + block) as u64;
                let rng = Rng::stream(self.params.seed, stream);
                worker.learn_block(tokens, self.rate(epoch, block), rng);
            }
        });
        let add = |a: Loss, b: Loss| Loss { sum: a.sum + b.sum, n: a.n + b.n };
        losses.into_iter().fold(Loss::default(), add)
    }

    fn rate(&self, epoch: usize, block: usize) -> f32 {
        let total = self.params.epochs * self.corpus.sentences.n_tokens();
        let left = 1.0 - self.n_tokens_before(epoch, block) as f64 / total as f64;
        (self.params.learning_rate * left.max(LAST_RATE)) as f32
    }
}
