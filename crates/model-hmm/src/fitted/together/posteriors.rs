//! The forward and backward recursions of many sentences.

use super::products::{LANES, flush, per_task, product, stacked};
use super::waiting::{Clusters, step_together};
use crate::fitted::posterior::{Emitters, Posterior};
use crate::model::Hmm;
use crate::recursion::products::largest;
use crate::space::state_set::StateSet;
use latens_math::chain::SMALLEST_SCALE;
use rayon::prelude::*;

/// Smaller sums become zero, as in `latens_math::BlockRef`.
const DUST: f32 = 1e-28;

/// A sentence, and how far its recursion is.
struct Smoothing<'a> {
    words: Vec<Emitters<'a>>,
    /// α of each token, which the backward recursion replaces by γ.
    values: Vec<f32>,
    /// The next token of the forward recursion; the last token of the backward recursion that is done.
    at: usize,
    /// b ∘ β of the token `at` in the backward recursion.
    weighted: Vec<f32>,
    has_underflow: bool,
}

/// The posterior of each sentence; `None` if it is impossible. No word has a list of states.
///
/// Like `smooth` in `latens_math::chain`. Where that underflows, the sentence is computed alone in log space.
pub(super) fn posteriors<'a>(
    hmm: &'a Hmm,
    sentences: Vec<Vec<Emitters<'a>>>,
) -> Vec<Option<Posterior<'a>>> {
    let k = hmm.space.k;
    let started = sentences.into_par_iter().map(|words| Smoothing::start(hmm, words)).collect();
    let mut read = step_together(
        started,
        |sentence| sentence.block(sentence.at),
        |clusters, group| forward(hmm, clusters, group),
    );
    read.iter_mut().for_each(Smoothing::turn);
    let smoothed = step_together(
        read,
        |sentence| sentence.block(sentence.at),
        |clusters, group| backward(hmm, clusters, group),
    );
    let posterior = |sentence: Smoothing<'a>| {
        if sentence.has_underflow {
            return hmm.chain_posterior(hmm.chain_of(sentence.words));
        }
        let states = sentence.words.iter().map(|(states, _)| *states).collect();
        Some(Posterior::new(k, states, sentence.values))
    };
    smoothed.into_par_iter().map(posterior).collect()
}

impl<'a> Smoothing<'a> {
    /// A sentence whose first token is read.
    fn start(hmm: &Hmm, words: Vec<Emitters<'a>>) -> Smoothing<'a> {
        let k = hmm.space.k;
        let mut values = vec![0.0; words.len() * k];
        let mut has_underflow = false;
        if let Some((states, local)) = words.first() {
            has_underflow = !alpha(&hmm.start_of(*states), local, &mut values[..k]);
        }
        Smoothing { words, values, at: 1, weighted: Vec::new(), has_underflow }
    }

    /// Ends the forward recursion and begins the backward one. γ of the last token is its α.
    fn turn(&mut self) {
        if let Some((_, local)) = self.words.last() {
            self.weighted = local.to_vec();
        }
        self.at = self.words.len().saturating_sub(1);
    }

    /// The block between a token and the one before it, unless the recursion has come to an end.
    fn block(&self, at: usize) -> Option<Clusters> {
        let is_over = self.has_underflow || at == 0 || at >= self.words.len();
        (!is_over).then(|| (cluster(&self.words[at - 1]), cluster(&self.words[at])))
    }
}

/// The cluster whose states emit a word.
pub(super) fn cluster((states, _): &Emitters<'_>) -> usize {
    match states {
        StateSet::Cluster(cluster) => *cluster,
        StateSet::List(_) => unreachable!("sentences with lists of states do not go together"),
    }
}

/// α_t = (α_{t−1} · A) ∘ b, scaled to sum to one.
fn forward(hmm: &Hmm, (from, to): Clusters, group: &mut [Smoothing<'_>]) {
    let k = hmm.space.k;
    let pairs = hmm.blocks.pairs(&hmm.space, StateSet::Cluster(from), StateSet::Cluster(to));
    let left = stacked(group.iter().map(|s| &s.values[(s.at - 1) * k..s.at * k]), k);
    let sums = product(&left, &pairs, k, false);
    let sentences = group.par_iter_mut().zip(sums.par_chunks_exact(k)).with_min_len(per_task(k));
    sentences.for_each(|(sentence, incoming)| {
        let values = &mut sentence.values[sentence.at * k..(sentence.at + 1) * k];
        sentence.has_underflow = !alpha(incoming, &sentence.words[sentence.at].1, values);
        sentence.at += 1;
    });
}

/// β_{t−1} = A · (b ∘ β_t), γ = α ∘ β, scaled to sum to one.
fn backward(hmm: &Hmm, (from, to): Clusters, group: &mut [Smoothing<'_>]) {
    let k = hmm.space.k;
    let pairs = hmm.blocks.pairs(&hmm.space, StateSet::Cluster(from), StateSet::Cluster(to));
    let left = stacked(group.iter().map(|s| &s.weighted[..]), k);
    let sums = product(&left, &pairs, k, true);
    let sentences = group.par_iter_mut().zip(sums.par_chunks_exact(k)).with_min_len(per_task(k));
    sentences.for_each(|(sentence, beta)| {
        sentence.at -= 1;
        let values = &mut sentence.values[sentence.at * k..(sentence.at + 1) * k];
        let local = &sentence.words[sentence.at].1;
        sentence.has_underflow = !gamma(beta, local, values, &mut sentence.weighted);
    });
}

/// out = incoming ∘ local, scaled to sum to one. Returns whether the sum was large enough.
fn alpha(incoming: &[f32], local: &[f32], out: &mut [f32]) -> bool {
    latens_math::vectorized(
        #[inline(always)]
        || {
            for ((out, &incoming), &local) in out.iter_mut().zip(incoming).zip(local) {
                *out = without_dust(incoming) * local;
            }
            let Some(scale) = scale(out) else { return false };
            out.iter_mut().for_each(|out| *out = flush(*out * scale));
            true
        },
    )
}

/// values = values ∘ beta, scaled to sum to one, and weighted = local ∘ beta, where beta is scaled to a maximum of one.
/// Returns whether the sum was large enough.
fn gamma(beta: &[f32], local: &[f32], values: &mut [f32], weighted: &mut [f32]) -> bool {
    latens_math::vectorized(
        #[inline(always)]
        || {
            for (value, &beta) in values.iter_mut().zip(beta) {
                *value *= without_dust(beta);
            }
            let Some(scale) = scale(values) else { return false };
            values.iter_mut().for_each(|value| *value *= scale);
            let factor = 1.0 / largest(beta);
            for ((weighted, &beta), &local) in weighted.iter_mut().zip(beta).zip(local) {
                *weighted = flush(without_dust(beta) * factor * local);
            }
            true
        },
    )
}

#[inline(always)]
fn without_dust(sum: f32) -> f32 {
    if sum < DUST { 0.0 } else { sum }
}

/// One divided by the sum of the values, or `None` if the sum is too small.
#[inline(always)]
fn scale(values: &[f32]) -> Option<f32> {
    let mut lanes = [0f64; LANES];
    for chunk in values.chunks(LANES) {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane += f64::from(value);
        }
    }
    let sum: f64 = lanes.iter().sum();
    (sum >= SMALLEST_SCALE && sum.is_finite()).then(
        #[inline(always)]
        || (1.0 / sum) as f32,
    )
}
