//! The most likely paths of many sentences (Viterbi).

use super::maxima::maxima;
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
    /// δ: the weight of the best path to each state of each token, scaled to a maximum of one.
    best: Vec<f32>,
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
        false => Some(sentence.path(hmm)),
    };
    traced.into_par_iter().map(path).collect()
}

impl<'a> Tracing<'a> {
    fn start(hmm: &Hmm, words: Vec<Emitters<'a>>) -> Tracing<'a> {
        let k = hmm.space.k;
        let (mut best, mut has_underflow) = (vec![0.0; words.len() * k], false);
        if let Some((states, local)) = words.first() {
            has_underflow = !weight(&hmm.start_of(*states), local, &mut best[..k]);
        }
        Tracing { words, best, at: 1, has_underflow }
    }

    /// The block between the next token and the one before it.
    fn block(&self) -> Option<Clusters> {
        let is_over = self.has_underflow || self.at >= self.words.len();
        (!is_over).then(|| (cluster(&self.words[self.at - 1]), cluster(&self.words[self.at])))
    }

    /// The path that ends in the best state of the last token. Ties go to the first state.
    ///
    /// The best predecessor of a state is found again here: to keep that of every state would take most of the time.
    fn path(&self, hmm: &Hmm) -> Vec<u32> {
        let k = hmm.space.k;
        let mut path: Vec<u32> = Vec::with_capacity(self.words.len());
        for ((states, _), best) in self.words.iter().zip(self.best.chunks_exact(k)).rev() {
            let first = |best: (usize, f32), (i, value): (usize, f32)| {
                if value > best.1 { (i, value) } else { best }
            };
            let values = best.iter().copied().enumerate();
            let (state, _) = match path.last() {
                None => values.fold((0, 0.0), first),
                Some(&next) => {
                    let pairs = hmm.blocks.pairs(&hmm.space, *states, StateSet::List(&[next]));
                    values.zip(&*pairs).map(|((i, a), b)| (i, a * b)).fold((0, 0.0), first)
                }
            };
            path.push(states.state(state, k));
        }
        path.reverse();
        path
    }
}

/// δ_t(j) = b(j) max_i δ_{t−1}(i) a(i, j), scaled to a maximum of one.
fn step(hmm: &Hmm, (from, to): Clusters, group: &mut [Tracing<'_>]) {
    let k = hmm.space.k;
    let pairs = hmm.blocks.pairs(&hmm.space, StateSet::Cluster(from), StateSet::Cluster(to));
    let before: Vec<f32> =
        group.iter().flat_map(|s| &s.best[(s.at - 1) * k..s.at * k]).copied().collect();
    let maxima = maxima(&before, &pairs, k);
    let sentences = group.par_iter_mut().zip(maxima.par_chunks_exact(k)).with_min_len(per_task(k));
    sentences.for_each(|(sentence, maxima)| {
        let best = &mut sentence.best[sentence.at * k..(sentence.at + 1) * k];
        sentence.has_underflow = !weight(maxima, &sentence.words[sentence.at].1, best);
        sentence.at += 1;
    });
}

/// out = incoming ∘ local, scaled to a maximum of one. Returns whether the maximum was large enough.
fn weight(incoming: &[f32], local: &[f32], out: &mut [f32]) -> bool {
    latens_math::vectorized(
        #[inline(always)]
        || {
            for ((out, &incoming), &local) in out.iter_mut().zip(incoming).zip(local) {
                *out = incoming * local;
            }
            let largest = largest(out);
            if f64::from(largest) < SMALLEST_SCALE || !largest.is_finite() {
                return false;
            }
            out.iter_mut().for_each(|out| *out /= largest);
            true
        },
    )
}
