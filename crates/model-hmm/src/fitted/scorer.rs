//! The model as a language model: the filtered distribution of states, word by word.

use crate::model::Hmm;
use crate::params::Memory;
use crate::space::state_set::StateSet;
use latens_corpus::WordId;
use latens_math::chain::SMALLEST_SCALE;
use latens_math::{BlockRef, log_sum_exp};
use latens_model::{LanguageModel, Scorer};
use rayon::prelude::*;
use std::borrow::Cow;

impl LanguageModel for Hmm {
    fn n_words(&self) -> usize {
        self.lexicon.vocab.len()
    }

    fn scorer(&self) -> Box<dyn Scorer + '_> {
        Box::new(HmmScorer { hmm: self, filtered: None })
    }

    /// Every sentence starts from π, unless the model was trained on running text.
    fn forgets_sentences(&self) -> bool {
        self.params.memory == Memory::Reset
    }

    /// Computes transitions in parallel if running text cannot be split into sentences.
    fn text_log_prob(&self, text: &[WordId]) -> f64 {
        /// Number of transitions to compute at a time, 256 MiB, unless a single word needs more.
        const N_PAIRS: usize = 1 << 26;
        let mut scorer = HmmScorer { hmm: self, filtered: None };
        if self.forgets_sentences() {
            return text.iter().map(|&word| scorer.read(word)).sum();
        }
        let n_words = (N_PAIRS / self.params.states_per_word().pow(2)).clamp(1, 256);
        let mut log_prob = 0.0;
        for begin in (0..text.len()).step_by(n_words) {
            let places = begin..(begin + n_words).min(text.len());
            let pairs: Vec<_> = places
                .clone()
                .into_par_iter()
                .map(|at| self.pairs_of_words(text[at.checked_sub(1)?], text[at]))
                .collect();
            let words = places.zip(&pairs);
            log_prob +=
                words.map(|(at, pairs)| scorer.step(text[at], pairs.as_deref())).sum::<f64>();
        }
        log_prob
    }
}

impl Hmm {
    /// The transitions from the states of a word to those of the next one, if both can be emitted.
    fn pairs_of_words(&self, before: WordId, word: WordId) -> Option<Cow<'_, [f32]>> {
        let (before, _) = self.emitters(before)?;
        let (states, _) = self.emitters(word)?;
        Some(self.blocks.pairs(&self.space, before, states))
    }
}

/// p(z_t | x_1 … x_t) for the states that may emit x_t.
struct HmmScorer<'a> {
    hmm: &'a Hmm,
    filtered: Option<(StateSet<'a>, Vec<f32>)>,
}

impl Scorer for HmmScorer<'_> {
    fn read(&mut self, word: WordId) -> f64 {
        self.step(word, None)
    }

    fn next_log_probs(&mut self, out: &mut [f64]) {
        let space = &self.hmm.space;
        assert_eq!(out.len(), self.hmm.n_words(), "one entry per word");
        out.fill(f64::NEG_INFINITY);
        for cluster in 0..space.n_clusters() {
            let incoming = self.incoming(StateSet::Cluster(cluster), None);
            let total: f64 = incoming.iter().map(|&p| f64::from(p)).sum();
            if total < SMALLEST_SCALE {
                self.log_space_log_probs(cluster, out);
                continue;
            }
            for slot in space.slots(cluster) {
                let incoming = space.pick(slot, &incoming);
                let pairs = incoming.iter().zip(self.hmm.emission_of(slot));
                let products = pairs.map(|(&a, &b)| f64::from(a) * f64::from(b));
                out[space.words()[slot].index()] = products.sum::<f64>().ln();
            }
        }
    }
}

impl HmmScorer<'_> {
    /// Computes α_t = (α_{t−1} · A[C_{t−1}, C_t]) ∘ b(x_t), whose sum is p(x_t | x_1 … x_{t−1}). After an impossible
    /// word, the states that may emit it have the probabilities of a sentence start; after a word that no state
    /// emits, a new sentence starts.
    ///
    /// `pairs` are the transitions to the states of `word`, if already computed.
    fn step(&mut self, word: WordId, pairs: Option<&[f32]>) -> f64 {
        assert!(word.index() < self.hmm.n_words(), "{word:?} is not in the vocabulary");
        let Some((states, local)) = self.hmm.emitters(word) else {
            self.filtered = None;
            return f64::NEG_INFINITY;
        };
        let incoming = self.incoming(states, pairs);
        let mut alpha: Vec<f32> = incoming.iter().zip(&*local).map(|(a, b)| a * b).collect();
        let mut sum: f64 = alpha.iter().map(|&alpha| f64::from(alpha)).sum();
        let log_prob = if sum >= SMALLEST_SCALE {
            sum.ln()
        } else {
            let logs = self.log_products(states, &local);
            let log_sum = log_sum_exp(&logs);
            alpha = if log_sum == f64::NEG_INFINITY {
                let start = self.hmm.start_of(states);
                start.iter().zip(&*local).map(|(a, b)| a * b).collect()
            } else {
                logs.iter().map(|log| (log - log_sum).exp() as f32).collect()
            };
            sum = alpha.iter().map(|&alpha| f64::from(alpha)).sum();
            log_sum
        };
        if sum > 0.0 {
            alpha.iter_mut().for_each(|alpha| *alpha = (f64::from(*alpha) / sum) as f32);
        } else {
            let share = 1.0 / alpha.len() as f32;
            alpha.fill(share);
        }
        let is_over = word == WordId::EOS && self.hmm.forgets_sentences();
        self.filtered = (!is_over).then_some((states, alpha));
        log_prob
    }

    /// p(z_{t+1} | x_1 … x_t) for some states.
    fn incoming(&self, states: StateSet<'_>, pairs: Option<&[f32]>) -> Vec<f32> {
        let Some((before, alpha)) = &self.filtered else { return self.hmm.start_of(states) };
        let pairs = match pairs {
            Some(pairs) => Cow::Borrowed(pairs),
            None => self.hmm.blocks.pairs(&self.hmm.space, *before, states),
        };
        let mut sums = vec![0.0; pairs.len() / alpha.len()];
        let block = BlockRef::new(&pairs, sums.len(), (0, alpha.len()), (0, sums.len()));
        block.times_rows(alpha, &mut sums);
        sums
    }

    /// ln p of the words of a cluster, in log space.
    fn log_space_log_probs(&self, cluster: usize, out: &mut [f64]) {
        let space = &self.hmm.space;
        let incoming = self.log_incoming(StateSet::Cluster(cluster));
        for slot in space.slots(cluster) {
            let incoming = space.pick(slot, &incoming);
            let pairs = incoming.iter().zip(self.hmm.emission_of(slot));
            let logs = pairs.map(|(a, &b)| a + f64::from(b).ln());
            out[space.words()[slot].index()] = log_sum_exp(&logs.collect::<Vec<_>>());
        }
    }

    /// ln of the products of incoming and emission probabilities, without underflow.
    fn log_products(&self, states: StateSet<'_>, local: &[f32]) -> Vec<f64> {
        let incoming = self.log_incoming(states);
        incoming
            .iter()
            .zip(local)
            .map(|(incoming, &local)| incoming + f64::from(local).ln())
            .collect()
    }

    /// ln of [`HmmScorer::incoming`], without underflow.
    fn log_incoming(&self, states: StateSet<'_>) -> Vec<f64> {
        let log = |&p: &f32| f64::from(p).ln();
        match &self.filtered {
            None => self.hmm.start_of(states).iter().map(log).collect(),
            Some((before, alpha)) => {
                let pairs = self.hmm.blocks.log_pairs(&self.hmm.space, *before, states);
                let n = pairs.len() / alpha.len();
                let column = |j: usize| -> Vec<f64> {
                    let entries = pairs.iter().skip(j).step_by(n);
                    alpha.iter().map(log).zip(entries).map(|(a, b)| a + b).collect()
                };
                (0..n).map(|j| log_sum_exp(&column(j))).collect()
            }
        }
    }
}
