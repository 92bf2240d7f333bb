//! The function that a tagger's weights minimise, −Σ ln p(tags | words) + c₂ Σ w², and its gradient.
//!
//! What features say of tags is added up for each group of attributes and each row of an encoder once, then
//! for each token. The gradient goes the same way back: from tokens to the groups and rows that they have, and
//! on to weights. Every sum is over a list that depends on the text alone, so threads change nothing.

use super::sums::{TokenSums, add_rows, times_weights, transposed_times};
use crate::tagging::features::examples::Examples;
use crate::tagging::features::lists::Lists;
use crate::tagging::heads::chain::{ChainHead, ChainScratch};
use crate::tagging::heads::local::LocalHead;
use crate::tagging::weights::layout::Layout;
use latens_math::Real;
use rayon::prelude::*;
use std::ops::Range;

/// About how many tokens one task takes.
const SHARD: usize = 1000;

/// How many groups, attributes or rows one task takes.
const CHUNK: usize = 512;

/// Vectors are as long as registers are wide.
const ALIGNMENT: usize = 8;

/// What is made of the numbers that features give each token.
enum Head<T> {
    Chain(ChainHead<T>),
    Local(LocalHead<T>),
}

/// What one part of the text adds.
pub(crate) struct Part<T> {
    pub(crate) loss: f64,
    /// The gradient of the head's own weights.
    pub(crate) gradient: Vec<f64>,
    pub(crate) chain: ChainScratch<T>,
}

/// The function, with memory for its steps. `T` is the precision that features are added up in.
pub(crate) struct Problem<'a, T> {
    examples: &'a Examples,
    layout: &'a Layout,
    head: Head<T>,
    l2: f64,
    stride: usize,
    shards: Vec<Range<usize>>,
    /// Tokens of each group; groups of each attribute, and tokens of one that is in none.
    tokens_of_group: Lists,
    groups_of_attribute: Lists,
    tokens_of_attribute: Lists,
    /// What groups say of tags; later what the gradient says of groups.
    group_scores: Vec<T>,
    /// The same for the rows of each encoder at each place.
    row_scores: Vec<Vec<T>>,
    /// The numbers of each token; later the gradient by them.
    token_scores: Vec<T>,
    /// The sentence of each token.
    sentence_of_token: Vec<u32>,
}

impl<'a, T: Real> Problem<'a, T> {
    pub(crate) fn new(examples: &'a Examples, layout: &'a Layout, is_chain: bool, l2: f64) -> Self {
        let stride = layout.width.next_multiple_of(ALIGNMENT);
        let lexical = &examples.lexical;
        let zeros = |n: usize| vec![T::zero(); n * stride];
        let n_attributes = lexical.attributes.len();
        let mut row_scores = Vec::new();
        for rows in &examples.blocks {
            row_scores.extend((0..layout.n_places).map(|_| zeros(rows.n_rows())));
        }
        let sentences = 0..examples.ends.len();
        let sentence_of_token = sentences.clone().flat_map(|sentence| {
            std::iter::repeat_n(sentence as u32, examples.sentence(sentence).len())
        });
        let head = if is_chain {
            Head::Chain(ChainHead::new(layout, stride))
        } else {
            Head::Local(LocalHead::new(layout, stride))
        };
        Problem {
            examples,
            layout,
            head,
            l2,
            stride,
            shards: examples.shards(SHARD),
            tokens_of_group: tokens_of(&lexical.of_token, lexical.n_groups, lexical.groups.len()),
            groups_of_attribute: lexical.groups.transposed(n_attributes),
            tokens_of_attribute: tokens_of(&lexical.singles, lexical.n_singles, n_attributes),
            group_scores: zeros(lexical.groups.len()),
            row_scores,
            token_scores: zeros(examples.n_tokens()),
            sentence_of_token: sentence_of_token.collect(),
        }
    }

    /// The value at `weights`; `gradient` is overwritten.
    pub(crate) fn evaluate(&mut self, weights: &[f64], gradient: &mut [f64]) -> f64 {
        self.score_groups(weights);
        self.score_rows(weights);
        gradient.fill(0.0);
        let loss = self.score_tokens(weights, gradient);
        self.return_to_groups();
        self.return_to_attributes(gradient);
        self.return_to_rows(gradient);
        loss + self.penalty(weights, gradient)
    }

    fn penalty(&self, weights: &[f64], gradient: &mut [f64]) -> f64 {
        let l2 = self.l2;
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

    fn score_groups(&mut self, weights: &[f64]) {
        let (groups, layout, stride) = (&self.examples.lexical.groups, self.layout, self.stride);
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
            for place in 0..self.layout.n_places {
                let weights = &weights[self.layout.block(block, place)];
                let weights: Vec<T> = weights.iter().map(|&w| T::of(w)).collect();
                let scores = &mut self.row_scores[block * self.layout.n_places + place];
                times_weights(rows, &weights, width, scores, stride);
            }
        }
    }

    /// The numbers of all tokens, what the head makes of them, and the gradient by them.
    fn score_tokens(&mut self, weights: &[f64], gradient: &mut [f64]) -> f64 {
        let (examples, stride) = (self.examples, self.stride);
        match &mut self.head {
            Head::Chain(head) => head.prepare(&weights[self.layout.transition_weights()]),
            Head::Local(head) => head.prepare(weights, self.layout),
        }
        let (head, group_scores, row_scores) = (&self.head, &self.group_scores, &self.row_scores);
        let layout = self.layout;
        let mut token_scores = std::mem::take(&mut self.token_scores);
        let mut rest = &mut token_scores[..];
        let mut tasks = Vec::with_capacity(self.shards.len());
        for shard in &self.shards {
            let n = examples.ends[shard.end - 1] - examples.sentence(shard.start).start;
            let (scores, after) = rest.split_at_mut(n * stride);
            tasks.push((shard.clone(), scores));
            rest = after;
        }
        let parts = tasks.into_par_iter().map(|(shard, mut scores)| {
            let mut part = head.part();
            for sentence in shard {
                let tokens = examples.sentence(sentence);
                let (own, after) = scores.split_at_mut(tokens.len() * stride);
                let sums =
                    TokenSums { examples, layout, weights, group_scores, row_scores, stride };
                pulp::Arch::new().dispatch(
                    #[inline(always)]
                    || sums.write(tokens.clone(), own),
                );
                match head {
                    Head::Chain(head) => head.run(&examples.tags[tokens], own, &mut part),
                    Head::Local(head) => {
                        let counts = &examples.counts[tokens.clone()];
                        pulp::Arch::new().dispatch(
                            #[inline(always)]
                            || head.run(&examples.tags[tokens], counts, own, &mut part),
                        );
                    }
                }
                scores = after;
            }
            if let Head::Chain(head) = head {
                head.close(&mut part);
            }
            part
        });
        let parts: Vec<Part<T>> = parts.collect();
        self.token_scores = token_scores;
        let mut sums = vec![0.0; self.head.part().gradient.len()];
        for part in &parts {
            sums.iter_mut().zip(&part.gradient).for_each(|(sum, g)| *sum += g);
        }
        match &self.head {
            Head::Chain(head) => head.finish(&sums, self.layout, gradient),
            Head::Local(_) => {
                let [first, _, last] = self.layout.network();
                gradient[first.start..last.end].copy_from_slice(&sums);
            }
        }
        parts.iter().map(|part| part.loss).sum()
    }

    /// The gradient by what each group says: the sum over its tokens.
    fn return_to_groups(&mut self) {
        let (tokens, token_scores, stride) =
            (&self.tokens_of_group, &self.token_scores, self.stride);
        self.group_scores.par_chunks_mut(CHUNK * stride).enumerate().for_each(|(chunk, sums)| {
            pulp::Arch::new().dispatch(
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

    /// The gradient by the weights of attributes: the sum over their groups.
    fn return_to_attributes(&self, gradient: &mut [f64]) {
        let (layout, stride) = (self.layout, self.stride);
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

    /// The gradient by the weights of encoders' columns.
    fn return_to_rows(&mut self, gradient: &mut [f64]) {
        let (n_places, stride, width) = (self.layout.n_places, self.stride, self.layout.width);
        for (block, rows) in self.examples.blocks.iter().enumerate() {
            for place in 0..n_places {
                let sums = &mut self.row_scores[block * n_places + place];
                let offset = place as isize - self.examples.window as isize;
                let (scores, sentences) = (&self.token_scores, &self.sentence_of_token);
                sums.par_chunks_mut(CHUNK * stride).enumerate().for_each(|(chunk, sums)| {
                    for (i, sums) in sums.chunks_exact_mut(stride).enumerate() {
                        // The tokens that see this row at this place.
                        let tokens = rows.tokens.get(chunk * CHUNK + i).iter();
                        let tokens = tokens.filter_map(|&token| {
                            let seen_by = (token as usize).checked_add_signed(-offset)?;
                            let same = sentences.get(seen_by)? == &sentences[token as usize];
                            same.then_some(seen_by)
                        });
                        add_rows(tokens, scores, stride, sums);
                    }
                });
                let gradient = &mut gradient[self.layout.block(block, place)];
                transposed_times(rows, sums, stride, width, gradient);
            }
        }
    }
}

impl<T: Real> Head<T> {
    fn part(&self) -> Part<T> {
        let n = match self {
            Head::Chain(head) => head.n_weights(),
            Head::Local(head) => head.n_weights(),
        };
        Part { loss: 0.0, gradient: vec![0.0; n], chain: ChainScratch::default() }
    }
}

/// The tokens that have each number, where every token has `n_each` numbers.
fn tokens_of(numbers: &[u32], n_each: usize, n: usize) -> Lists {
    let of_token = numbers.chunks(n_each.max(1)).zip(0u32..);
    let pairs = of_token.flat_map(|(numbers, token)| numbers.iter().map(move |&n| (n, token)));
    Lists::by_number(n, pairs)
}
