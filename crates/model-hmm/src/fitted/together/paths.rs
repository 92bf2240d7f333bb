//! The most likely paths of many sentences (Viterbi).

use super::maxima::{Maxima, PANEL};
use super::posteriors::cluster;
use super::products::per_task;
use super::waiting::{Clusters, step_together};
use crate::fitted::posterior::Emitters;
use crate::model::Hmm;
use crate::recursion::products::largest;
use crate::space::state_set::StateSet;
use latens_math::chain::SMALLEST_SCALE;
use rayon::prelude::*;

/// A sentence, and how far its recursion is.
struct Tracing<'a> {
    words: Vec<Emitters<'a>>,
    /// δ: the weight of the best path to each state of each token, scaled to a maximum of one.
    best: Vec<f32>,
    /// Which panel of [`PANEL`] states contains the first best predecessor of each state of each token.
    panels: Vec<u16>,
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
            best[..k].copy_from_slice(&hmm.start_of(*states));
            has_underflow = !weight(local, &mut best[..k]);
        }
        let panels = vec![0; best.len()];
        Tracing { words, best, panels, at: 1, has_underflow }
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
        let mut panel = 0..k;
        for (at, (states, _)) in self.words.iter().enumerate().rev() {
            let best = &self.best[at * k..][panel.clone()];
            let state = match path.last() {
                None => first_largest(best.iter().copied()),
                Some(&next) => {
                    let from: Vec<u32> = panel.clone().map(|i| states.state(i, k)).collect();
                    let next = StateSet::List(std::slice::from_ref(&next));
                    let pairs = hmm.blocks.pairs(&hmm.space, StateSet::List(&from), next);
                    first_largest(best.iter().zip(&*pairs).map(|(a, b)| a * b))
                }
            };
            let state = panel.start + state;
            path.push(states.state(state, k));
            let begin = usize::from(self.panels[at * k + state]) * PANEL;
            panel = begin..(begin + PANEL).min(k);
        }
        path.reverse();
        path
    }
}

/// The index of the first of the largest values.
fn first_largest(values: impl Iterator<Item = f32>) -> usize {
    let largest = values.enumerate().fold(
        (0, 0.0),
        |best, (i, value)| {
            if value > best.1 { (i, value) } else { best }
        },
    );
    largest.0
}

/// δ_t(j) = b(j) max_i δ_{t−1}(i) a(i, j), scaled to a maximum of one.
fn step(hmm: &Hmm, (from, to): Clusters, group: &mut [Tracing<'_>]) {
    let k = hmm.space.k;
    let pairs = hmm.blocks.pairs(&hmm.space, StateSet::Cluster(from), StateSet::Cluster(to));
    let before: Vec<&[f32]> = group.iter().map(|s| &s.best[(s.at - 1) * k..s.at * k]).collect();
    let maxima = Maxima::of(&before, &pairs, k);
    let sentences = group.par_iter_mut().enumerate().with_min_len(per_task(k));
    sentences.for_each(|(m, sentence)| {
        let states = sentence.at * k..(sentence.at + 1) * k;
        let (best, panels) = (&mut sentence.best[states.clone()], &mut sentence.panels[states]);
        let mut begin = 0;
        for (maxima, of_maxima) in maxima.row(m) {
            let end = begin + maxima.len();
            best[begin..end].copy_from_slice(maxima);
            let panels = panels[begin..end].iter_mut().zip(of_maxima);
            panels.for_each(|(panel, &of_max)| *panel = of_max as u16);
            begin = end;
        }
        sentence.has_underflow = !weight(&sentence.words[sentence.at].1, best);
        sentence.at += 1;
    });
}

/// Multiplies by `local` and scales to a maximum of one. Returns whether the maximum was large enough.
fn weight(local: &[f32], out: &mut [f32]) -> bool {
    latens_math::vectorized(
        #[inline(always)]
        || {
            out.iter_mut().zip(local).for_each(|(out, &local)| *out *= local);
            let largest = largest(out);
            if f64::from(largest) < SMALLEST_SCALE || !largest.is_finite() {
                return false;
            }
            out.iter_mut().for_each(|out| *out /= largest);
            true
        },
    )
}
