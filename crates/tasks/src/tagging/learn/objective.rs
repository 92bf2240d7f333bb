//! The training objective, −Σ ln p(tags | words) + c₂ Σ θ², and its gradient.
//!
//! Scores are summed once per group of attributes and once per row of an encoder, then per token. The gradient flows
//! back the same way: from tokens to their groups and rows, and from these to weights. The order of every sum depends on
//! the text alone, so results do not depend on the number of threads.

use super::sums::{TokenSums, add_rows, times_weights, transposed_times};
use crate::tagging::features::examples::Examples;
use crate::tagging::features::lists::Lists;
use crate::tagging::heads::chain::ChainHead;
use crate::tagging::heads::local::LocalHead;
use crate::tagging::heads::shard::{ChainScratch, Shard};
use crate::tagging::params::Kind;
use crate::tagging::weights::layout::Layout;
use latens_math::Real;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Minimum number of tokens per shard.
const SHARD_TOKENS: usize = 1000;

/// Number of groups, attributes or rows per parallel task.
const CHUNK: usize = 512;

/// Scores are padded to a multiple of this, so that loops over them vectorize.
const ALIGNMENT: usize = 8;

/// Turns the scores of tokens into probabilities of tags.
enum Head<T> {
    Chain(ChainHead<T>),
    Local(LocalHead<T>),
}

/// The objective, with scratch memory. `T` is the precision in which scores are summed.
pub(crate) struct Objective<T> {
    examples: Arc<Examples>,
    layout: Arc<Layout>,
    head: Head<T>,
    l2: f64,
    stride: usize,
    shards: Vec<Range<usize>>,
    /// Tokens of each group, groups of each attribute, and tokens of each attribute that is in no group.
    tokens_of_group: Lists,
    groups_of_attribute: Lists,
    tokens_of_attribute: Lists,
    /// Scores of groups, then the gradient with respect to them.
    group_scores: Vec<T>,
    /// The same for the rows of each encoder at each position of the window.
    row_scores: Vec<Vec<T>>,
    /// Scores of tokens, then the gradient with respect to them.
    token_scores: Vec<T>,
    /// Index of the sentence of each token.
    sentence_of_token: Vec<u32>,
}

impl<T: Real> Objective<T> {
    pub(crate) fn new(
        examples: &Arc<Examples>,
        layout: &Arc<Layout>,
        kind: Kind,
        l2: f64,
    ) -> Objective<T> {
        let stride = layout.width.next_multiple_of(ALIGNMENT);
        let lexical = &examples.lexical;
        let zeros = |n: usize| vec![T::zero(); n * stride];
        let n_attributes = lexical.attributes.len();
        let mut row_scores = Vec::new();
        for rows in &examples.blocks {
            row_scores.extend((0..layout.n_positions).map(|_| zeros(rows.n_rows())));
        }
        let sentences = 0..examples.ends.len();
        let sentence_of_token = sentences.clone().flat_map(|sentence| {
            std::iter::repeat_n(sentence as u32, examples.sentence(sentence).len())
        });
        let head = match kind {
            Kind::Crf => Head::Chain(ChainHead::new(layout, stride)),
            Kind::Local => Head::Local(LocalHead::new(layout, stride)),
        };
        Objective {
            examples: Arc::clone(examples),
            layout: Arc::clone(layout),
            head,
            l2,
            stride,
            shards: examples.shards(SHARD_TOKENS),
            tokens_of_group: tokens_of(&lexical.of_token, lexical.n_groups, lexical.groups.len()),
            groups_of_attribute: lexical.groups.transposed(n_attributes),
            tokens_of_attribute: tokens_of(&lexical.singles, lexical.n_singles, n_attributes),
            group_scores: zeros(lexical.groups.len()),
            row_scores,
            token_scores: zeros(examples.n_tokens()),
            sentence_of_token: sentence_of_token.collect(),
        }
    }

    /// Returns the value at `weights` and overwrites `gradient`.
    pub(crate) fn evaluate(&mut self, weights: &[f64], gradient: &mut [f64]) -> f64 {
        self.score_groups(weights);
        self.score_rows(weights);
        gradient.fill(0.0);
        let loss = self.score_tokens(weights, gradient);
        self.backpropagate_to_groups();
        self.backpropagate_to_attributes(gradient);
        self.backpropagate_to_rows(gradient);
        loss + penalty(self.l2, weights, gradient)
    }

    /// Number of weights.
    pub(crate) fn n_weights(&self) -> usize {
        self.layout.n_weights()
    }

    fn score_groups(&mut self, weights: &[f64]) {
        let (groups, layout, stride) = (&self.examples.lexical.groups, &self.layout, self.stride);
        self.group_scores.par_chunks_mut(CHUNK * stride).enumerate().for_each(|(chunk, scores)| {
            for (i, scores) in scores.chunks_exact_mut(stride).enumerate() {
                scores.fill(T::zero());
                for &attribute in groups.get(chunk * CHUNK + i) {
                    let range = layout.attribute(attribute as usize);
                    for (&tag, &w) in layout.tags[range.clone()].iter().zip(&weights[range]) {
                        scores[usize::from(tag)] += T::of(w);
                    }
                }
            }
        });
    }

    fn score_rows(&mut self, weights: &[f64]) {
        let (width, stride) = (self.layout.width, self.stride);
        for (block, rows) in self.examples.blocks.iter().enumerate() {
            for position in 0..self.layout.n_positions {
                let weights = &weights[self.layout.block(block, position)];
                let weights: Vec<T> = weights.iter().map(|&w| T::of(w)).collect();
                let scores = &mut self.row_scores[block * self.layout.n_positions + position];
                times_weights(rows, &weights, width, scores, stride);
            }
        }
    }

    /// Scores all tokens, runs the head, and replaces the scores by the gradient with respect to them. Returns the loss.
    fn score_tokens(&mut self, weights: &[f64], gradient: &mut [f64]) -> f64 {
        let (examples, layout, stride) = (&*self.examples, &*self.layout, self.stride);
        match &mut self.head {
            Head::Chain(head) => head.prepare(&weights[self.layout.transition_weights()]),
            Head::Local(head) => head.prepare(weights, layout),
        }
        let (head, group_scores, row_scores) = (&self.head, &self.group_scores, &self.row_scores);
        let mut token_scores = std::mem::take(&mut self.token_scores);
        let mut rest = &mut token_scores[..];
        let mut tasks = Vec::with_capacity(self.shards.len());
        for shard in &self.shards {
            let n = examples.ends[shard.end - 1] - examples.sentence(shard.start).start;
            let (scores, after) = rest.split_at_mut(n * stride);
            tasks.push((shard.clone(), scores));
            rest = after;
        }
        let shards = tasks.into_par_iter().map(|(shard, mut scores)| {
            let mut shard_sums = head.new_shard();
            for sentence in shard {
                let tokens = examples.sentence(sentence);
                let (own, after) = scores.split_at_mut(tokens.len() * stride);
                let sums =
                    TokenSums { examples, layout, weights, group_scores, row_scores, stride };
                latens_math::vectorized(
                    #[inline(always)]
                    || sums.write(tokens.clone(), own),
                );
                match head {
                    Head::Chain(head) => head.run(&examples.tags[tokens], own, &mut shard_sums),
                    Head::Local(head) => {
                        let counts = &examples.counts[tokens.clone()];
                        latens_math::vectorized(
                            #[inline(always)]
                            || {
                                head.run(
                                    &examples.tags[tokens.clone()],
                                    counts,
                                    own,
                                    &mut shard_sums,
                                )
                            },
                        );
                    }
                }
                scores = after;
            }
            if let Head::Chain(head) = head {
                head.close(&mut shard_sums);
            }
            shard_sums
        });
        let shards: Vec<Shard<T>> = shards.collect();
        self.token_scores = token_scores;
        let mut sums = vec![0.0; self.head.new_shard().gradient.len()];
        for shard in &shards {
            sums.iter_mut().zip(&shard.gradient).for_each(|(sum, g)| *sum += g);
        }
        match &self.head {
            Head::Chain(head) => head.finish(&sums, layout, gradient),
            Head::Local(_) => {
                gradient[self.layout.network().all()].copy_from_slice(&sums);
            }
        }
        shards.iter().map(|shard| shard.loss).sum()
    }

    /// Gradient with respect to the scores of groups: the sum over their tokens.
    fn backpropagate_to_groups(&mut self) {
        let (tokens, token_scores, stride) =
            (&self.tokens_of_group, &self.token_scores, self.stride);
        self.group_scores.par_chunks_mut(CHUNK * stride).enumerate().for_each(|(chunk, sums)| {
            latens_math::vectorized(
                #[inline(always)]
                || {
                    for (i, sums) in sums.chunks_exact_mut(stride).enumerate() {
                        let tokens = tokens.get(chunk * CHUNK + i).iter();
                        add_rows(tokens.map(|&token| token as usize), token_scores, stride, sums);
                    }
                },
            );
        });
    }

    /// Gradient with respect to the weights of attributes: the sum over their groups and tokens.
    fn backpropagate_to_attributes(&self, gradient: &mut [f64]) {
        let (layout, stride) = (&*self.layout, self.stride);
        let (sums, scores) = (&self.group_scores, &self.token_scores);
        let n = self.groups_of_attribute.len();
        let mut rest = &mut gradient[..layout.tags.len()];
        let mut tasks = Vec::new();
        for begin in (0..n).step_by(CHUNK) {
            let end = (begin + CHUNK).min(n);
            let size = layout.attributes[end] - layout.attributes[begin];
            let (part, after) = rest.split_at_mut(size);
            tasks.push((begin..end, part));
            rest = after;
        }
        tasks.into_par_iter().for_each(|(attributes, part)| {
            let first = layout.attributes[attributes.start];
            for attribute in attributes {
                let range = layout.attribute(attribute);
                let tags = &layout.tags[range.clone()];
                let part = &mut part[range.start - first..range.end - first];
                for &group in self.groups_of_attribute.get(attribute) {
                    let sums = &sums[group as usize * stride..][..stride];
                    for (g, &tag) in part.iter_mut().zip(tags) {
                        *g += sums[usize::from(tag)].wide();
                    }
                }
                for &token in self.tokens_of_attribute.get(attribute) {
                    let scores = &scores[token as usize * stride..][..stride];
                    for (g, &tag) in part.iter_mut().zip(tags) {
                        *g += scores[usize::from(tag)].wide();
                    }
                }
            }
        });
    }

    /// Gradient with respect to the weights of encoders.
    fn backpropagate_to_rows(&mut self, gradient: &mut [f64]) {
        let (n_positions, stride, width) =
            (self.layout.n_positions, self.stride, self.layout.width);
        for (block, rows) in self.examples.blocks.iter().enumerate() {
            for position in 0..n_positions {
                let sums = &mut self.row_scores[block * n_positions + position];
                let offset = position as isize - self.examples.window as isize;
                let (scores, sentences) = (&self.token_scores, &self.sentence_of_token);
                sums.par_chunks_mut(CHUNK * stride).enumerate().for_each(|(chunk, sums)| {
                    for (i, sums) in sums.chunks_exact_mut(stride).enumerate() {
                        // The tokens that have this row at this position of their window.
                        let tokens = rows.tokens.get(chunk * CHUNK + i).iter();
                        let tokens = tokens.filter_map(|&token| {
                            let seen_by = (token as usize).checked_add_signed(-offset)?;
                            let same = sentences.get(seen_by)? == &sentences[token as usize];
                            same.then_some(seen_by)
                        });
                        add_rows(tokens, scores, stride, sums);
                    }
                });
                let gradient = &mut gradient[self.layout.block(block, position)];
                transposed_times(rows, sums, stride, width, gradient);
            }
        }
    }
}

/// c₂ Σ θ². Adds its gradient to `gradient`.
pub(crate) fn penalty(l2: f64, weights: &[f64], gradient: &mut [f64]) -> f64 {
    let parts = weights.par_chunks(1 << 15).zip(gradient.par_chunks_mut(1 << 15));
    let parts = parts.map(|(weights, gradient)| {
        let mut sum = 0.0;
        for (w, g) in weights.iter().zip(gradient) {
            sum += w * w;
            *g += 2.0 * l2 * w;
        }
        l2 * sum
    });
    parts.collect::<Vec<f64>>().iter().sum()
}

impl<T: Real> Head<T> {
    fn new_shard(&self) -> Shard<T> {
        let n = match self {
            Head::Chain(head) => head.n_weights(),
            Head::Local(head) => head.n_weights(),
        };
        Shard { loss: 0.0, gradient: vec![0.0; n], chain: ChainScratch::default() }
    }
}

/// The tokens of each item, where every token has `n_each` items.
fn tokens_of(items: &[u32], n_each: usize, n: usize) -> Lists {
    let of_token = items.chunks(n_each.max(1)).zip(0u32..);
    let pairs = of_token.flat_map(|(items, token)| items.iter().map(move |&item| (item, token)));
    Lists::by_key(n, pairs)
}
