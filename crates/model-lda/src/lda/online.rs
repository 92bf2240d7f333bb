//! Inference for documents with out-of-vocabulary words.
//!
//! As in Zhai and Boyd-Graber (2013), a topic is a draw from a Dirichlet process over all strings: the prior weight of a
//! new word is V β times the probability of its spelling, and its topics are learned from a batch of documents. Known
//! words keep their probabilities. Unlike the paper, this does not truncate vocabularies or use variational inference.

use super::model::Lda;
use super::spelling::Spelling;
use super::types::type_of;
use crate::draw::{Mixture, padded_alpha};
use crate::infer::{InferenceParams, Inferred, Known, MeanMixture};
use latens_corpus::{Documents, WordId};
use latens_math::Rng;
use latens_model::Valid;
use rayon::prelude::*;
use std::collections::HashMap;

/// Minimum prior weight, to avoid underflow in single precision.
const SMALLEST_PRIOR: f64 = 1e-30;

impl Lda {
    /// Infers the topic mixtures of documents, which must be read with the lexicon of this model
    /// ([`Documents::read_with`]). The topics of unknown words are learned within each batch of `batch` documents.
    ///
    /// # Panics
    /// If `batch` is 0.
    pub fn infer_online(
        &self,
        documents: &Documents,
        batch: usize,
        params: &Valid<InferenceParams>,
    ) -> Vec<Inferred> {
        assert!(batch > 0, "`batch` must be at least 1");
        let (vocab, mut priors) = (&self.lexicon().vocab, HashMap::new());
        let spelling = Spelling::new((2..vocab.len()).map(|w| vocab.word(WordId::from(w))));
        let mass = (vocab.len() - 2) as f64 * self.fitted_with().beta;
        let mut new_type = |word: WordId| {
            let letters = documents.extra_word(word)?;
            let prior = || (mass * spelling.prob(letters)).max(SMALLEST_PRIOR) as f32;
            priors.entry(word.0).or_insert_with(prior);
            Some(word.0)
        };
        let mut of = |&word: &WordId| type_of(word, vocab.len()).or_else(|| new_type(word));
        let known: Vec<Known> =
            documents.iter().map(|d| Known::new(d.words.iter().map(&mut of))).collect();
        let padded = padded_alpha(self.alpha());
        let infer =
            |documents: &[Known]| Batch::new(self, &priors, &padded).infer(documents, params);
        known.par_chunks(batch).map(infer).flatten_iter().collect()
    }
}

/// The topics of new words in a batch of documents.
struct Batch<'a> {
    model: &'a Lda,
    priors: &'a HashMap<u32, f32>,
    /// Counts of each new word in each topic, padded.
    counts: HashMap<u32, Vec<f32>>,
    /// N_k + V β including the tokens of new words, padded.
    totals: Vec<f32>,
    mixture: Mixture<'a>,
    /// Scratch space.
    row: Vec<f32>,
}

impl<'a> Batch<'a> {
    fn new(model: &'a Lda, priors: &'a HashMap<u32, f32>, alpha: &'a [f32]) -> Batch<'a> {
        let all_beta = (model.lexicon().vocab.len() - 2) as f64 * model.fitted_with().beta;
        let sizes = model.topic_sizes();
        let mut totals: Vec<f32> = sizes.iter().map(|&n| (n as f64 + all_beta) as f32).collect();
        totals.resize(alpha.len(), 1.0);
        let (counts, row) = (HashMap::new(), vec![0.0; alpha.len()]);
        Batch { model, priors, counts, totals, mixture: Mixture::new(alpha), row }
    }

    fn infer(mut self, batch: &[Known], params: &InferenceParams) -> Vec<Inferred> {
        let (alpha, n_trained) = (self.model.alpha(), self.model.lexicon().vocab.len());
        // Identical documents in a batch need different random streams.
        let seeds = (0..).map(|i| params.seed.wrapping_add(i));
        let mut rngs: Vec<Rng> =
            batch.iter().zip(seeds).map(|(d, seed)| d.rng(seed, n_trained)).collect();
        let firsts = batch.iter().zip(&mut rngs);
        let mut topics: Vec<Vec<u16>> = firsts.map(|(d, rng)| self.begin(d, rng)).collect();
        let mut means: Vec<MeanMixture> =
            batch.iter().map(|_| MeanMixture::new(alpha.len())).collect();
        for sweep in 0..params.n_sweeps {
            for (d, document) in batch.iter().enumerate() {
                self.sweep(document, &mut topics[d], &mut rngs[d]);
                if sweep >= params.n_sweeps / 2 {
                    means[d].add(&topics[d], alpha);
                }
            }
        }
        let parts = batch.iter().zip(means).zip(&topics);
        parts.map(|((document, mean), topics)| document.finish(mean.mean(), topics)).collect()
    }

    /// Draws the initial topic of each token given the preceding ones.
    fn begin(&mut self, document: &Known, rng: &mut Rng) -> Vec<u16> {
        self.mixture.reset(&[]);
        let draw = |&token_type: &u32| {
            let topic = self.draw(token_type, rng);
            self.count(token_type, topic, 1.0);
            self.mixture.add(topic);
            topic as u16
        };
        document.types.iter().map(draw).collect()
    }

    fn sweep(&mut self, document: &Known, topics: &mut [u16], rng: &mut Rng) {
        self.mixture.reset(topics);
        for (&token_type, topic) in document.types.iter().zip(topics) {
            let old = usize::from(*topic);
            self.count(token_type, old, -1.0);
            self.mixture.remove(old);
            let new = self.draw(token_type, rng);
            self.count(token_type, new, 1.0);
            self.mixture.add(new);
            *topic = new as u16;
        }
    }

    fn draw(&mut self, token_type: u32, rng: &mut Rng) -> usize {
        let Some(&prior) = self.priors.get(&token_type) else {
            return self.mixture.draw(self.model.row(token_type), rng);
        };
        let counts = self.counts.get(&token_type);
        for (k, (p, total)) in self.row.iter_mut().zip(&self.totals).enumerate() {
            *p = (counts.map_or(0.0, |counts| counts[k]) + prior) / total;
        }
        self.mixture.draw(&self.row, rng)
    }

    /// Adds a token to a topic or removes it, if its word is new.
    fn count(&mut self, token_type: u32, topic: usize, change: f32) {
        if self.priors.contains_key(&token_type) {
            let n = self.totals.len();
            self.counts.entry(token_type).or_insert_with(|| vec![0.0; n])[topic] += change;
            self.totals[topic] += change;
        }
    }
}
