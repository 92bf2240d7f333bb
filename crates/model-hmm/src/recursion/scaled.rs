//! The scaled forward and backward passes of a model with clusters or state lists, over parts of a batch in parallel.

use crate::recursion::products::{
    Member, Pair, backward_product, by_groups, forward_product, largest, product, scaled_product,
    smallest_share, stacked,
};
use crate::recursion::workspace::Workspace;
use crate::tables::probability_tables::Tables;
use latens_math::Real;
use rayon::prelude::*;
use std::ops::Range;

/// Number of tokens per part of a batch, and the smallest number of parts. The parts depend on the batch alone, so that
/// the result does not depend on the number of threads.
const PART_TOKENS: usize = 4096;
const MIN_PARTS: usize = 4;

impl<T: Real> Workspace<T> {
    /// Splits the batch into parts of whole sentences.
    fn parts(&self) -> Vec<Range<usize>> {
        let (n_sentences, n_tokens) = (self.n_sentences(), self.groups.len());
        let n_parts = (n_tokens / PART_TOKENS).max(MIN_PARTS).min(n_sentences).max(1);
        let cut = |part: usize| part * n_sentences / n_parts;
        (0..n_parts).map(|part| cut(part)..cut(part + 1)).collect()
    }

    /// Fills in α and returns ln p of every sentence, NaN if the recursion underflowed.
    pub(crate) fn forward(&mut self, tables: &Tables<T>) -> Vec<f64> {
        let parts = self.parts();
        let mut alpha = std::mem::take(&mut self.alpha);
        let pieces = self.split(&mut alpha, &parts);
        let log_probs = parts
            .par_iter()
            .zip(pieces)
            .map(|(part, alpha)| self.forward_part(tables, part.clone(), alpha));
        let log_probs = log_probs.collect::<Vec<_>>().concat();
        self.alpha = alpha;
        log_probs
    }

    fn forward_part(
        &self,
        tables: &Tables<T>,
        sentences: Range<usize>,
        alpha: &mut [T],
    ) -> Vec<f64> {
        let first = self.value_starts[self.sentence_starts[sentences.start]];
        let range = |at: usize| self.value_starts[at] - first..self.value_starts[at + 1] - first;
        let smallest_share = smallest_share(tables);
        let mut log_probs = vec![0.0f64; sentences.len()];
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let longest = sentences.clone().map(|s| self.len(s)).max().unwrap_or(0);
        for step in 0..longest {
            let active = sentences
                .clone()
                .zip(&log_probs)
                .filter(|(s, log_prob)| self.len(*s) > step && !log_prob.is_nan());
            let members = active.map(|(s, _)| {
                let at = self.sentence_starts[s] + step;
                let from = if step == 0 { 0 } else { self.groups[at - 1] };
                Member::new(from, self.groups[at], at, s)
            });
            let mut members: Vec<_> = members.collect();
            right.clear();
            for (from, to, members) in by_groups(&mut members) {
                if step == 0 {
                    let start = tables.pick(&tables.start, tables.states(to));
                    members.iter().for_each(|_| right.extend_from_slice(&start));
                    continue;
                }
                let left = stacked(members, &mut left, |at| &alpha[range(at - 1)]);
                let n = members.len() * tables.states(to).len(tables.k);
                let out = grow(&mut right, n);
                forward_product(Pair { tables, from, to }, left, out);
            }
            latens_math::vectorized(
                #[inline(always)]
                || {
                    let mut right = &right[..];
                    for member in &members {
                        let (at, s) = (member.token(), member.sentence());
                        let (local, alpha) = (self.local_of(at), &mut alpha[range(at)]);
                        let (incoming, rest) = right.split_at(alpha.len());
                        right = rest;
                        let scale = product(incoming, local, alpha);
                        // Relative to the word's most likely state, so that the rounding of the incoming
                        // probabilities decides, and not the rarity of the word.
                        let scale = scale.filter(
                            #[inline(always)]
                            |&scale| {
                                scale >= smallest_share
                                    || scale >= smallest_share * largest(local).wide()
                            },
                        );
                        log_probs[s - sentences.start] += scale.map_or(f64::NAN, f64::ln);
                    }
                },
            );
        }
        log_probs
    }

    /// Fills in γ, v = b ∘ β and α/κ, and returns ln p of every sentence, NaN if the recursion underflowed. A part goes
    /// forward and backward before the next one, while its values are in the cache.
    pub(crate) fn forward_backward(&mut self, tables: &Tables<T>) -> Vec<f64> {
        let parts = self.parts();
        let (mut alpha, mut weighted) =
            (std::mem::take(&mut self.alpha), std::mem::take(&mut self.weighted));
        let mut nodes = std::mem::take(&mut self.nodes);
        let split = |values| self.split(values, &parts);
        let pieces = split(&mut alpha).into_iter().zip(split(&mut weighted)).zip(split(&mut nodes));
        let work: Vec<_> = parts.iter().cloned().zip(pieces).collect();
        let log_probs = work.into_par_iter().map(|(part, ((alpha, weighted), nodes))| {
            let mut log_probs = self.forward_part(tables, part.clone(), alpha);
            let piece = Piece { alpha, weighted, nodes };
            self.backward_part(tables, part, piece, &mut log_probs);
            log_probs
        });
        let log_probs = log_probs.collect::<Vec<_>>().concat();
        (self.alpha, self.weighted, self.nodes) = (alpha, weighted, nodes);
        log_probs
    }

    /// Sets ln p of a sentence to NaN if the recursion underflowed.
    fn backward_part(
        &self,
        tables: &Tables<T>,
        sentences: Range<usize>,
        piece: Piece<'_, T>,
        log_probs: &mut [f64],
    ) {
        let first = self.value_starts[self.sentence_starts[sentences.start]];
        let range = |at: usize| self.value_starts[at] - first..self.value_starts[at + 1] - first;
        let smallest_share = smallest_share(tables);
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let ones = vec![T::one(); tables.k];
        let longest = sentences.clone().map(|s| self.len(s)).max().unwrap_or(0);
        for step in (0..longest).rev() {
            for s in sentences.clone().filter(|&s| self.len(s) == step + 1) {
                let at = self.sentence_starts[s] + step;
                piece.nodes[range(at)].copy_from_slice(&piece.alpha[range(at)]);
                let local = self.local_of(at);
                latens_math::vectorized(
                    #[inline(always)]
                    || scaled_product(local, &ones[..local.len()], &mut piece.weighted[range(at)]),
                );
            }
            let active = sentences
                .clone()
                .zip(&*log_probs)
                .filter(|(s, log_prob)| self.len(*s) > step + 1 && !log_prob.is_nan());
            let members = active.map(|(s, _)| {
                let at = self.sentence_starts[s] + step;
                Member::new(self.groups[at], self.groups[at + 1], at, s)
            });
            let mut members: Vec<_> = members.collect();
            right.clear();
            for (from, to, members) in by_groups(&mut members) {
                let left = stacked(members, &mut left, |at| &piece.weighted[range(at + 1)]);
                let out = grow(&mut right, members.len() * tables.states(from).len(tables.k));
                backward_product(Pair { tables, from, to }, left, out);
            }
            latens_math::vectorized(
                #[inline(always)]
                || {
                    let mut right = &right[..];
                    for member in &members {
                        let (at, s) = (member.token(), member.sentence());
                        let alpha = &mut piece.alpha[range(at)];
                        let (beta, rest) = right.split_at(alpha.len());
                        right = rest;
                        let total = product(alpha, beta, &mut piece.nodes[range(at)]);
                        let Some(total) = total.filter(|&total| total >= smallest_share) else {
                            log_probs[s - sentences.start] = f64::NAN;
                            continue;
                        };
                        let scale = T::of(1.0 / total);
                        for alpha in alpha.iter_mut() {
                            *alpha *= scale;
                        }
                        scaled_product(beta, self.local_of(at), &mut piece.weighted[range(at)]);
                    }
                },
            );
        }
    }

    /// Splits the values of all tokens by parts.
    fn split<'v>(&self, values: &'v mut [T], parts: &[Range<usize>]) -> Vec<&'v mut [T]> {
        let mut rest = values;
        let pieces = parts.iter().map(|part| {
            let place = |sentence: usize| self.value_starts[self.sentence_starts[sentence]];
            let n = place(part.end) - place(part.start);
            rest.split_off_mut(..n).expect("parts cover all tokens")
        });
        pieces.collect()
    }
}

/// Adds `n` numbers to a buffer, and returns them.
fn grow<T: Real>(buffer: &mut Vec<T>, n: usize) -> &mut [T] {
    let begin = buffer.len();
    buffer.resize(begin + n, T::zero());
    &mut buffer[begin..]
}

/// The slices of the buffers that belong to a part.
struct Piece<'a, T> {
    alpha: &'a mut [T],
    weighted: &'a mut [T],
    nodes: &'a mut [T],
}
