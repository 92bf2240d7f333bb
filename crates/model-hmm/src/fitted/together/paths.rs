//! The most likely paths of many sentences (Viterbi).

use super::maxima::{Maxima, STRIP};
use super::posteriors::{cluster, largest, per_task};
use super::waiting::{Clusters, step_together};
use crate::fitted::posterior::Emitters;
use crate::model::Hmm;
use crate::space::state_set::StateSet;
use latens_math::chain::SMALLEST_SCALE;
use rayon::prelude::*;

/// A sentence, and how far its recursion is.
struct Tracing<'a> {
    words: Vec<Emitters<'a>>,
    /// The weight of the best path to each state of the last token, scaled to a maximum of one.
    best: Vec<f32>,
    /// The best predecessor of each state of each token but the first.
    origins: Vec<u32>,
    /// The next token.
    at: usize,
    has_underflow: bool,
}

/// The most likely path of each sentence; `None` if it is impossible. No word has a list of states.
///
/// The same path as that of `viterbi` in `latens_math::chain`. Where that underflows, the sentence is computed alone in
/// log space.
pub(super) fn paths<'a>(hmm: &'a Hmm, sentences: Vec<Vec<Emitters<'a>>>) -> Vec<Option<Vec<u32>>> {
    let started = sentences.into_par_iter().map(|words| Tracing::start(hmm, words)).collect();
    let traced = step_together(
        started,
        |sentence| sentence.block(),
        |clusters, group| step(hmm, clusters, group),
    );
    let path = |sentence: Tracing<'a>| match sentence.has_underflow {
        true => hmm.chain_path(&hmm.chain_of(sentence.words)),
        false => Some(sentence.path(hmm.space.k)),
    };
    traced.into_par_iter().map(path).collect()
}

impl<'a> Tracing<'a> {
    fn start(hmm: &Hmm, words: Vec<Emitters<'a>>) -> Tracing<'a> {
        let (mut best, mut has_underflow) = (Vec::new(), false);
        if let Some((states, local)) = words.first() {
            best = hmm.start_of(*states);
            has_underflow = !weight(&mut best, local);
        }
        let origins = Vec::with_capacity(words.len().saturating_sub(1) * hmm.space.k);
        Tracing { words, best, origins, at: 1, has_underflow }
    }

    /// The block between the next token and the one before it.
    fn block(&self) -> Option<Clusters> {
        let is_over = self.has_underflow || self.at >= self.words.len();
        (!is_over).then(|| (cluster(&self.words[self.at - 1]), cluster(&self.words[self.at])))
    }

    /// The path that ends in the best state of the last token. Ties go to the first state.
    fn path(&self, k: usize) -> Vec<u32> {
        let Some(mut state) = self.best.iter().position(|&best| best == 1.0) else {
            return vec![];
        };
        let mut path = Vec::with_capacity(self.words.len());
        for (at, (states, _)) in self.words.iter().enumerate().rev() {
            path.push(states.state(state, k));
            if at > 0 {
                state = self.origins[(at - 1) * k + state] as usize;
            }
        }
        path.reverse();
        path
    }
}

/// δ_t(j) = b(j) max_i δ_{t−1}(i) a(i, j), scaled to a maximum of one.
fn step(hmm: &Hmm, (from, to): Clusters, group: &mut [Tracing<'_>]) {
    let k = hmm.space.k;
    let pairs = hmm.blocks.pairs(&hmm.space, StateSet::Cluster(from), StateSet::Cluster(to));
    let before: Vec<&[f32]> = group.iter().map(|sentence| &sentence.best[..]).collect();
    let maxima = Maxima::new(&before, &pairs, k);
    let sentences = group.par_iter_mut().enumerate().with_min_len(per_task(k));
    sentences.for_each(|(idx, sentence)| {
        let parts = sentence.best.chunks_mut(STRIP).zip(maxima.of(idx));
        for (best, (values, origins)) in parts {
            best.copy_from_slice(&values[..best.len()]);
            sentence.origins.extend_from_slice(&origins[..best.len()]);
        }
        sentence.has_underflow = !weight(&mut sentence.best, &sentence.words[sentence.at].1);
        sentence.at += 1;
    });
}

/// Multiplies with the emission probabilities and scales to a maximum of one. Returns whether the maximum was large
/// enough.
fn weight(best: &mut [f32], local: &[f32]) -> bool {
    latens_math::vectorized(
        #[inline(always)]
        || {
            best.iter_mut().zip(local).for_each(|(best, &local)| *best *= local);
            let largest = largest(best);
            if f64::from(largest) < SMALLEST_SCALE || !largest.is_finite() {
                return false;
            }
            best.iter_mut().for_each(|best| *best /= largest);
            true
        },
    )
}
