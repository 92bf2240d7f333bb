//! The exact recursion over a batch of sentences: probabilities in, expected counts out.
//!
//! With C_t the k states of the cluster of word t (Chiu and Rush 2020, §3):
//!
//! ```text
//! α_1 = π[C_1] ∘ b(x_1)      α_t = (α_{t−1} · A[C_{t−1}, C_t]) ∘ b(x_t)      p(x) = Σ α_T
//! ```
//!
//! Sentences whose words at the same place have the same two clusters share a block of A, so that
//! products of vectors and matrices become products of matrices. The expected counts of one block are
//! (Σ_t α_t/κ_t ⊗ v_{t+1}) ∘ A with v = b ∘ β, one product of matrices for the whole batch. All scales are as
//! in `latens_math::chain`; sentences that are too unlikely for them are left to logarithms.

use crate::support::Support;
use crate::tables::{Batch, Tables};
use faer::{Accum, MatMut, MatRef, Par};
use latens_math::chain::{LogChain, log_forward, log_smooth};
use latens_math::{BlockRef, Real, log_sum_exp};
use latens_nn::multiply;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// What a batch is expected to have done, by the posterior of its states.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expected<T> {
    /// How often each state is the first one.
    pub(crate) start: Vec<T>,
    /// How often each state is left for another: the row sums of the transitions.
    pub(crate) left: Vec<T>,
    /// The transitions of blocks that were used, divided by their probabilities.
    pub(crate) ratios: Vec<Block<T>>,
    /// More transitions, of sentences that are too unlikely to be divided by.
    pub(crate) counts: Vec<Block<T>>,
    /// The slots that were emitted, ascending, and for each the k states of its cluster.
    pub(crate) slots: Vec<u32>,
    pub(crate) emission: Vec<T>,
    /// For each tag, how often each state emitted it.
    pub(crate) tags: Vec<T>,
}

/// A k × k matrix of one pair of clusters.
#[derive(Clone, Debug)]
pub(crate) struct Block<T> {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) values: Vec<T>,
}

/// The memory that batches share, and where a batch lies in it.
#[derive(Default)]
pub(crate) struct Engine<T> {
    /// Where each sentence begins among the tokens, and where the last one ends.
    offsets: Vec<usize>,
    clusters: Vec<u32>,
    slots: Vec<u32>,
    /// b ∘ g of each token: k.
    local: Vec<T>,
    /// α of each token, later α/κ.
    alpha: Vec<T>,
    /// b ∘ β of each token.
    weighted: Vec<T>,
    /// γ of each token.
    nodes: Vec<T>,
}

/// How many parts of a batch are worked on side by side. It is fixed, so that the result does not depend on
/// the number of threads.
const N_PARTS: usize = 4;

impl<T: Real> Engine<T> {
    /// ln p of every sentence of a batch.
    pub(crate) fn log_probs(
        &mut self,
        support: &Support,
        tables: &Tables<T>,
        batch: &Batch<'_>,
    ) -> Vec<f64> {
        self.place(support, tables, batch);
        let mut log_probs = self.forward(tables);
        log_probs.par_iter_mut().enumerate().for_each(|(sentence, log_prob)| {
            if log_prob.is_nan() {
                let alphas = log_forward(&self.log_chain(tables, sentence));
                *log_prob = log_sum_exp(&alphas[alphas.len() - 1]);
            }
        });
        log_probs
    }

    /// Overwrites `out` with the expected counts of a batch, and returns ln p of every sentence. An
    /// impossible sentence has −∞ and counts nothing.
    pub(crate) fn expectations(
        &mut self,
        support: &Support,
        tables: &Tables<T>,
        batch: &Batch<'_>,
        out: &mut Expected<T>,
    ) -> Vec<f64> {
        self.place(support, tables, batch);
        let mut log_probs = self.forward(tables);
        self.backward(tables, &mut log_probs);
        let hard: Vec<usize> = (0..log_probs.len()).filter(|&s| log_probs[s].is_nan()).collect();
        self.smooth_in_logarithms(tables, &hard, &mut log_probs, &mut out.counts);
        self.collect_pairs(tables, &hard, out);
        self.collect_nodes(tables, batch, &log_probs, out);
        log_probs
    }

    fn place(&mut self, support: &Support, tables: &Tables<T>, batch: &Batch<'_>) {
        let k = tables.k;
        self.offsets.clear();
        self.offsets.push(0);
        self.clusters.clear();
        self.slots.clear();
        for sentence in &batch.sentences {
            for &word in *sentence {
                self.clusters.push(support.cluster(word).unwrap_or(0) as u32);
                self.slots.push(support.slot(word).map_or(u32::MAX, |slot| slot as u32));
            }
            self.offsets.push(self.clusters.len());
        }
        let n_values = self.clusters.len() * k;
        for values in [&mut self.local, &mut self.alpha, &mut self.weighted, &mut self.nodes] {
            values.clear();
            values.resize(n_values, T::zero());
        }
        let rows = self.local.par_chunks_exact_mut(k).zip(&self.slots);
        rows.filter(|(_, slot)| **slot != u32::MAX).for_each(|(local, &slot)| {
            local.copy_from_slice(&tables.emission[slot as usize * k..(slot as usize + 1) * k]);
        });
        for (sentence, tags) in batch.tags.iter().enumerate() {
            for (i, &tag) in tags.iter().enumerate() {
                let at = self.offsets[sentence] + i;
                let first = tag as usize * tables.n_states() + self.clusters[at] as usize * k;
                let local = self.local[at * k..(at + 1) * k].iter_mut();
                local.zip(&tables.tags[first..first + k]).for_each(|(local, &tag)| *local *= tag);
            }
        }
    }

    /// Cuts the batch into parts of whole sentences; with one cluster there is one part, since then all
    /// sentences share one product that is itself divided among threads.
    fn parts(&self, tables: &Tables<T>) -> (Vec<std::ops::Range<usize>>, Par) {
        let n_sentences = self.offsets.len() - 1;
        if tables.k == tables.n_states() {
            return (vec![0..n_sentences], Par::rayon(0));
        }
        let n_parts = N_PARTS.min(n_sentences).max(1);
        let cut = |part: usize| part * n_sentences / n_parts;
        ((0..n_parts).map(|part| cut(part)..cut(part + 1)).collect(), Par::Seq)
    }

    /// Fills α, and returns ln p of each sentence, NaN where logarithms are needed.
    fn forward(&mut self, tables: &Tables<T>) -> Vec<f64> {
        let (parts, par) = self.parts(tables);
        let mut alpha = std::mem::take(&mut self.alpha);
        let pieces = split(&mut alpha, &parts, &self.offsets, tables.k);
        let log_probs = parts
            .par_iter()
            .zip(pieces)
            .map(|(part, alpha)| self.forward_part(tables, part.clone(), alpha, par));
        let log_probs = log_probs.collect::<Vec<_>>().concat();
        self.alpha = alpha;
        log_probs
    }

    fn forward_part(
        &self,
        tables: &Tables<T>,
        sentences: std::ops::Range<usize>,
        alpha: &mut [T],
        par: Par,
    ) -> Vec<f64> {
        let (k, first) = (tables.k, self.offsets[sentences.start]);
        let mut log_probs = vec![0.0f64; sentences.len()];
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let longest = sentences.clone().map(|s| self.len(s)).max().unwrap_or(0);
        for step in 0..longest {
            let active = sentences
                .clone()
                .zip(&log_probs)
                .filter(|(s, log_prob)| self.len(*s) > step && !log_prob.is_nan());
            let members = active.map(|(s, _)| {
                let at = self.offsets[s] + step;
                (if step == 0 { 0 } else { self.clusters[at - 1] }, self.clusters[at], at, s)
            });
            for (from, to, members) in groups(&mut members.collect::<Vec<_>>()) {
                if step > 0 {
                    left.clear();
                    for &(_, _, at, _) in members {
                        let at = (at - 1 - first) * k;
                        left.extend_from_slice(&alpha[at..at + k]);
                    }
                    right.resize(left.len(), T::zero());
                    forward_product(Pair { tables, from, to }, &left, &mut right, par);
                }
                for (i, &(_, _, at, s)) in members.iter().enumerate() {
                    let local = &self.local[at * k..(at + 1) * k];
                    let alpha = &mut alpha[(at - first) * k..(at - first + 1) * k];
                    let scale = match step {
                        0 => product(&tables.start[to * k..(to + 1) * k], local, alpha),
                        _ => product(&right[i * k..(i + 1) * k], local, alpha),
                    };
                    // Against the word's likeliest state, so that the rounding of what comes in, and not
                    // how rare the word is, decides.
                    let enough = |scale: &f64| *scale >= SMALLEST_SHARE * largest(local).wide();
                    let scale = scale.filter(enough);
                    log_probs[s - sentences.start] += scale.map_or(f64::NAN, f64::ln);
                }
            }
        }
        log_probs
    }

    /// Fills γ and v = b ∘ β, and divides α by κ; marks sentences with NaN where logarithms are needed.
    fn backward(&mut self, tables: &Tables<T>, log_probs: &mut [f64]) {
        let (parts, par) = self.parts(tables);
        let (mut alpha, mut weighted) =
            (std::mem::take(&mut self.alpha), std::mem::take(&mut self.weighted));
        let mut nodes = std::mem::take(&mut self.nodes);
        let cut = |values| split(values, &parts, &self.offsets, tables.k);
        let pieces = cut(&mut alpha).into_iter().zip(cut(&mut weighted)).zip(cut(&mut nodes));
        let mut marks = Vec::new();
        let mut rest = log_probs;
        for part in &parts {
            let (head, tail) = rest.split_at_mut(part.len());
            marks.push(head);
            rest = tail;
        }
        let work: Vec<_> = parts.iter().cloned().zip(pieces).zip(marks).collect();
        work.into_par_iter().for_each(|((part, ((alpha, weighted), nodes)), log_probs)| {
            self.backward_part(tables, part, Piece { alpha, weighted, nodes }, log_probs, par);
        });
        (self.alpha, self.weighted, self.nodes) = (alpha, weighted, nodes);
    }

    fn backward_part(
        &self,
        tables: &Tables<T>,
        sentences: std::ops::Range<usize>,
        piece: Piece<'_, T>,
        log_probs: &mut [f64],
        par: Par,
    ) {
        let (k, first) = (tables.k, self.offsets[sentences.start]);
        let range = |at: usize| (at - first) * k..(at - first + 1) * k;
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let ones = vec![T::one(); k];
        let longest = sentences.clone().map(|s| self.len(s)).max().unwrap_or(0);
        for step in (0..longest).rev() {
            for s in sentences.clone().filter(|&s| self.len(s) == step + 1) {
                let at = self.offsets[s] + step;
                piece.nodes[range(at)].copy_from_slice(&piece.alpha[range(at)]);
                let local = &self.local[at * k..(at + 1) * k];
                scaled_product(local, &ones, &mut piece.weighted[range(at)]);
            }
            let active = sentences
                .clone()
                .zip(&*log_probs)
                .filter(|(s, log_prob)| self.len(*s) > step + 1 && !log_prob.is_nan());
            let members = active.map(|(s, _)| {
                let at = self.offsets[s] + step;
                (self.clusters[at], self.clusters[at + 1], at, s)
            });
            for (from, to, members) in groups(&mut members.collect::<Vec<_>>()) {
                left.clear();
                for &(_, _, at, _) in members {
                    left.extend_from_slice(&piece.weighted[range(at + 1)]);
                }
                right.resize(left.len(), T::zero());
                backward_product(Pair { tables, from, to }, &left, &mut right, par);
                for (i, &(_, _, at, s)) in members.iter().enumerate() {
                    let beta = &right[i * k..(i + 1) * k];
                    let (alpha, nodes) = (&mut piece.alpha[range(at)], &mut piece.nodes[range(at)]);
                    let total = product(alpha, beta, nodes);
                    let Some(total) = total.filter(|&total| total >= SMALLEST_SHARE) else {
                        log_probs[s - sentences.start] = f64::NAN;
                        continue;
                    };
                    let scale = T::of(1.0 / total);
                    alpha.iter_mut().for_each(|alpha| *alpha *= scale);
                    let local = &self.local[at * k..(at + 1) * k];
                    scaled_product(beta, local, &mut piece.weighted[range(at)]);
                }
            }
        }
    }

    /// The posterior of sentences by logarithms: γ into its place, transitions into `counts`.
    fn smooth_in_logarithms(
        &mut self,
        tables: &Tables<T>,
        sentences: &[usize],
        log_probs: &mut [f64],
        counts: &mut Vec<Block<T>>,
    ) {
        let k = tables.k;
        let smoothed = sentences.par_iter().map(|&s| self.smooth_one_in_logarithms(tables, s));
        let smoothed: Vec<LogSmoothed<T>> = smoothed.collect();
        let mut blocks = LogBlocks::new();
        for (&sentence, smoothed) in sentences.iter().zip(smoothed) {
            log_probs[sentence] = smoothed.log_prob;
            let nodes = self.offsets[sentence] * k..self.offsets[sentence + 1] * k;
            self.nodes[nodes].copy_from_slice(&smoothed.nodes);
            smoothed.blocks.iter().for_each(|(&key, values)| add_block(&mut blocks, key, values));
        }
        counts.clear();
        counts.extend(blocks.into_iter().map(|((from, to), values)| {
            let values = values.iter().map(|&value| T::of(value)).collect();
            Block { from, to, values }
        }));
    }

    fn smooth_one_in_logarithms(&self, tables: &Tables<T>, sentence: usize) -> LogSmoothed<T> {
        let (k, begin) = (tables.k, self.offsets[sentence]);
        let mut nodes = vec![T::zero(); self.len(sentence) * k];
        let mut blocks = LogBlocks::new();
        let log_prob = log_smooth(
            &self.log_chain(tables, sentence),
            |step, values| {
                let nodes = nodes[step * k..(step + 1) * k].iter_mut();
                nodes.zip(values).for_each(|(node, &value)| *node = T::of(value));
            },
            |step, values| {
                let at = begin + step;
                add_block(&mut blocks, (self.clusters[at], self.clusters[at + 1]), values);
            },
        );
        LogSmoothed { log_prob, nodes, blocks }
    }

    /// Σ_t α_t/κ_t ⊗ v_{t+1} of every block that was used.
    fn collect_pairs(&self, tables: &Tables<T>, hard: &[usize], out: &mut Expected<T>) {
        let k = tables.k;
        let easy = (0..self.offsets.len() - 1).filter(|s| hard.binary_search(s).is_err());
        let pairs = easy.flat_map(|s| {
            let pairs = self.offsets[s]..self.offsets[s + 1].max(1) - 1;
            pairs.map(move |at| (self.clusters[at], self.clusters[at + 1], at, s))
        });
        let mut pairs: Vec<Member> = pairs.collect();
        let par = if tables.k == tables.n_states() { Par::rayon(0) } else { Par::Seq };
        let groups: Vec<_> = groups(&mut pairs).collect();
        let blocks = groups.into_par_iter().map(|(from, to, members)| {
            let stack = |values: &[T], next: usize| -> Vec<T> {
                let rows = members
                    .iter()
                    .map(|&(_, _, at, _)| &values[(at + next) * k..(at + next + 1) * k]);
                rows.flatten().copied().collect()
            };
            let (alpha, weighted) = (stack(&self.alpha, 0), stack(&self.weighted, 1));
            let mut values = vec![T::zero(); k * k];
            let alpha = MatRef::from_row_major_slice(&alpha, members.len(), k);
            let weighted = MatRef::from_row_major_slice(&weighted, members.len(), k);
            let sums = MatMut::from_row_major_slice_mut(&mut values, k, k);
            multiply(sums, Accum::Replace, alpha.transpose(), weighted, par);
            Block { from: from as u32, to: to as u32, values }
        });
        out.ratios = blocks.collect();
    }

    fn collect_nodes(
        &self,
        tables: &Tables<T>,
        batch: &Batch<'_>,
        log_probs: &[f64],
        out: &mut Expected<T>,
    ) {
        let (k, n_states) = (tables.k, tables.n_states());
        for (sums, n) in [
            (&mut out.start, n_states),
            (&mut out.left, n_states),
            (&mut out.tags, tables.tags.len()),
        ] {
            sums.clear();
            sums.resize(n, T::zero());
        }
        let mut by_slot: Vec<(u32, u32)> = Vec::with_capacity(self.slots.len());
        for (sentence, &log_prob) in log_probs.iter().enumerate() {
            let (begin, end) = (self.offsets[sentence], self.offsets[sentence + 1]);
            if log_prob == f64::NEG_INFINITY || begin == end {
                continue;
            }
            by_slot.extend((begin..end).map(|at| (self.slots[at], at as u32)));
            let first = |at: usize| self.clusters[at] as usize * k;
            let node = |at: usize| &self.nodes[at * k..(at + 1) * k];
            add(&mut out.start[first(begin)..first(begin) + k], node(begin));
            for at in begin..end - 1 {
                add(&mut out.left[first(at)..first(at) + k], node(at));
            }
            for (i, &tag) in
                batch.tags.get(sentence).copied().unwrap_or_default().iter().enumerate()
            {
                let first = tag as usize * n_states + first(begin + i);
                add(&mut out.tags[first..first + k], node(begin + i));
            }
        }
        by_slot.sort_unstable();
        out.slots.clear();
        out.emission.clear();
        for (slot, at) in by_slot {
            let node = &self.nodes[at as usize * k..(at as usize + 1) * k];
            if out.slots.last() == Some(&slot) {
                let last = out.emission.len() - k;
                add(&mut out.emission[last..], node);
            } else {
                out.slots.push(slot);
                out.emission.extend_from_slice(node);
            }
        }
    }

    fn len(&self, sentence: usize) -> usize {
        self.offsets[sentence + 1] - self.offsets[sentence]
    }

    fn log_chain<'a>(&'a self, tables: &'a Tables<T>, sentence: usize) -> LogSentence<'a, T> {
        LogSentence {
            engine: self,
            tables,
            begin: self.offsets[sentence],
            n_steps: self.len(sentence),
        }
    }
}

/// Transitions between the states of two clusters, k × k, added up.
type LogBlocks = BTreeMap<(u32, u32), Vec<f64>>;

fn add_block(blocks: &mut LogBlocks, key: (u32, u32), values: &[f64]) {
    let sums = blocks.entry(key).or_insert_with(|| vec![0.0; values.len()]);
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
}

/// One sentence, done by logarithms.
struct LogSmoothed<T> {
    log_prob: f64,
    nodes: Vec<T>,
    blocks: LogBlocks,
}

/// The parts of the arrays that belong to some sentences.
struct Piece<'a, T> {
    alpha: &'a mut [T],
    weighted: &'a mut [T],
    nodes: &'a mut [T],
}

/// A token by the clusters of two neighbours: (cluster before, cluster, token, sentence).
type Member = (u32, u32, usize, usize);

/// Sorts tokens, and gives those that share both clusters together.
fn groups(members: &mut [Member]) -> impl Iterator<Item = (usize, usize, &[Member])> {
    members.sort_unstable();
    let groups = members.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1));
    groups.map(|members| (members[0].0 as usize, members[0].1 as usize, members))
}

/// One sentence of the batch, by the logarithms of its probabilities.
struct LogSentence<'a, T> {
    engine: &'a Engine<T>,
    tables: &'a Tables<T>,
    begin: usize,
    n_steps: usize,
}

impl<T: Real> LogChain for LogSentence<'_, T> {
    fn n_steps(&self) -> usize {
        self.n_steps
    }

    fn log_local(&self, step: usize) -> Vec<f64> {
        let (k, at) = (self.tables.k, self.begin + step);
        let mut log_local: Vec<f64> =
            self.engine.local[at * k..(at + 1) * k].iter().map(|local| local.wide().ln()).collect();
        if step == 0 {
            let first = self.engine.clusters[at] as usize * k;
            let start = &self.tables.start[first..first + k];
            log_local.iter_mut().zip(start).for_each(|(local, start)| *local += start.wide().ln());
        }
        log_local
    }

    fn log_pairs(&self, step: usize) -> Vec<f64> {
        let at = self.begin + step;
        let (from, to) = (self.engine.clusters[at], self.engine.clusters[at + 1]);
        self.tables.log_block(from as usize, to as usize)
    }
}

/// Cuts an array of k values a token where parts of sentences begin.
fn split<'a, T>(
    values: &'a mut [T],
    parts: &[std::ops::Range<usize>],
    offsets: &[usize],
    k: usize,
) -> Vec<&'a mut [T]> {
    let mut rest = values;
    let mut pieces = Vec::with_capacity(parts.len());
    for part in parts {
        let n = (offsets[part.end] - offsets[part.start]) * k;
        let (head, tail) = rest.split_at_mut(n);
        pieces.push(head);
        rest = tail;
    }
    pieces
}

/// The k × k block of one pair of clusters.
#[derive(Clone, Copy)]
struct Pair<'a, T> {
    tables: &'a Tables<T>,
    from: usize,
    to: usize,
}

impl<'a, T: Real> Pair<'a, T> {
    /// Whether there is but one block.
    fn is_all(self) -> bool {
        self.tables.k == self.tables.n_states()
    }

    fn rows(self) -> BlockRef<'a, T> {
        let (k, n) = (self.tables.k, self.tables.n_states());
        BlockRef::new(&self.tables.transition, n, (self.from * k, k), (self.to * k, k))
    }

    fn matrix(self) -> MatRef<'a, T> {
        let (k, n) = (self.tables.k, self.tables.n_states());
        let all = MatRef::from_row_major_slice(&self.tables.transition[..], n, n);
        all.submatrix(self.from * k, self.to * k, k, k)
    }
}

/// out = left · block. Where there is one block only, many rows share it, and a general product is faster.
fn forward_product<T: Real>(pair: Pair<'_, T>, left: &[T], out: &mut [T], par: Par) {
    let n = left.len() / pair.tables.k;
    if !pair.is_all() || n < 4 {
        return pair.rows().times_rows(left, out);
    }
    let k = pair.tables.k;
    let out = MatMut::from_row_major_slice_mut(out, n, k);
    let left = MatRef::from_row_major_slice(left, n, k);
    multiply(out, Accum::Replace, left, pair.matrix(), par);
}

/// out = left · blockᵀ.
fn backward_product<T: Real>(pair: Pair<'_, T>, left: &[T], out: &mut [T], par: Par) {
    let n = left.len() / pair.tables.k;
    if !pair.is_all() || n < 4 {
        return pair.rows().transposed_times_rows(left, out);
    }
    let k = pair.tables.k;
    let out = MatMut::from_row_major_slice_mut(out, n, k);
    let left = MatRef::from_row_major_slice(left, n, k);
    multiply(out, Accum::Replace, left, pair.matrix().transpose(), par);
}

/// out = a ∘ b, scaled to a sum of one; returns what the sum was, unless it is too small.
fn product<T: Real>(a: &[T], b: &[T], out: &mut [T]) -> Option<f64> {
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || {
            for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
                *out = a * b;
            }
            let sum = sum(out);
            if !(f64::MIN_POSITIVE..f64::MAX).contains(&sum) {
                return None;
            }
            let scale = T::of(1.0 / sum);
            out.iter_mut().for_each(|out| *out = without_dust(*out * scale));
            Some(sum)
        },
    )
}

/// What is smaller is taken for zero in α and β, so that no factor is a subnormal number, with which
/// processors are a hundred times slower.
const SMALLEST: f64 = 1e-30;

/// Below this share of the mass, what was taken for zero could be missed: k·10⁻³⁰ at most.
const SMALLEST_SHARE: f64 = 1e-22;

/// Transitions that are smaller are taken for zero where all words share all states: a general product
/// then adds them up, in which sums could be subnormal; and there, other transitions outweigh them.
pub(crate) const SMALLEST_TRANSITION: f64 = 1e-20;

#[inline(always)]
fn without_dust<T: Real>(value: T) -> T {
    if value < T::of(SMALLEST) { T::zero() } else { value }
}

#[inline(always)]
fn sum<T: Real>(values: &[T]) -> f64 {
    /// How many sums run side by side, as the compiler may not reorder additions.
    const LANES: usize = 16;
    let mut lanes = [T::zero(); LANES];
    values.chunks(LANES).for_each(|chunk| add(&mut lanes, chunk));
    lanes.iter().map(|lane| lane.wide()).sum()
}

#[inline(always)]
fn largest<T: Real>(values: &[T]) -> T {
    values.iter().fold(T::zero(), |max, &value| if value > max { value } else { max })
}

/// out = a ∘ b, scaled to a maximum of one.
fn scaled_product<T: Real>(a: &[T], b: &[T], out: &mut [T]) {
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || {
            let mut max = T::zero();
            for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
                *out = a * b;
                max = if *out > max { *out } else { max };
            }
            let scale = T::one() / max;
            out.iter_mut().for_each(|out| *out = without_dust(*out * scale));
        },
    );
}

#[inline(always)]
fn add<T: Real>(sums: &mut [T], values: &[T]) {
    sums.iter_mut().zip(values).for_each(|(sum, &value)| *sum += value);
}
