//! The exact recursion over a batch of sentences: probabilities in, expected counts out.
//!
//! With C_t the states that may emit word t (Chiu and Rush 2020, §3):
//!
//! ```text
//! α_1 = π[C_1] ∘ b(x_1)      α_t = (α_{t−1} · A[C_{t−1}, C_t]) ∘ b(x_t)      p(x) = Σ α_T
//! ```
//!
//! C_t are the k states of the word's cluster, or those of a list of its own. Sentences whose words at the same
//! place have the same two clusters share a block of A, so that
//! products of vectors and matrices become products of matrices. The expected counts of one block are
//! (Σ_t α_t/κ_t ⊗ v_{t+1}) ∘ A with v = b ∘ β, one product of matrices for the whole batch. All scales are as
//! in `latens_math::chain`; sentences that are too unlikely for them are left to logarithms.

use crate::fitted::block_cache::States;
use crate::recursion::scaled::{Member, add, groups};
use crate::space::kept_lists::ListedRatios;
use crate::space::state_space::Support;
use crate::tables::probability_tables::{Batch, Tables};
use faer::{Accum, MatMut, MatRef, Par};
use latens_math::chain::log_forward;
use latens_math::{Real, log_sum_exp};
use latens_nn::multiply;
use rayon::prelude::*;

/// What a batch is expected to have done, by the posterior of its states.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expected<T> {
    /// How often each state is the first one.
    pub(crate) start: Vec<T>,
    /// How often each state is left for another: the row sums of the transitions.
    pub(crate) left: Vec<T>,
    /// The transitions of blocks that were used, divided by their probabilities.
    pub(crate) ratios: Vec<Block<T>>,
    /// The same where words have lists of states.
    pub(crate) listed: ListedRatios<T>,
    /// More transitions, of sentences that are too unlikely to be divided by.
    pub(crate) counts: Vec<Block<T>>,
    /// The slots that were emitted, ascending, and for each the states that may emit it.
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
    pub(crate) offsets: Vec<usize>,
    /// The cluster of each token, or its slot where each has a list of states: tokens of one group share their
    /// states.
    pub(crate) groups: Vec<u32>,
    slots: Vec<u32>,
    /// Where the numbers of each token begin, one for each of its states, and where those of the last one end.
    pub(crate) places: Vec<usize>,
    /// b ∘ g of each token.
    pub(crate) local: Vec<T>,
    /// α of each token, later α/κ.
    pub(crate) alpha: Vec<T>,
    /// b ∘ β of each token.
    pub(crate) weighted: Vec<T>,
    /// γ of each token.
    pub(crate) nodes: Vec<T>,
}

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
        let has_lists = tables.lists.is_some();
        let mut n_values = 0;
        for values in [&mut self.offsets, &mut self.places] {
            values.clear();
            values.push(0);
        }
        self.groups.clear();
        self.slots.clear();
        for sentence in &batch.sentences {
            for &word in *sentence {
                let slot = support.slot(word);
                // A word that no state emits has the states of another, but with zeros.
                let group = if has_lists { slot } else { support.cluster(word) }.unwrap_or(0);
                n_values += tables.states(group).len(tables.k);
                self.groups.push(group as u32);
                self.slots.push(slot.map_or(u32::MAX, |slot| slot as u32));
                self.places.push(n_values);
            }
            self.offsets.push(self.groups.len());
        }
        for values in [&mut self.local, &mut self.alpha, &mut self.weighted, &mut self.nodes] {
            values.clear();
            values.resize(n_values, T::zero());
        }
        let tokens = self.places.windows(2).zip(&self.slots);
        let mut rest = &mut self.local[..];
        let rows = tokens.map(|(ends, &slot)| {
            let local = rest.split_off_mut(..ends[1] - ends[0]).expect("room for every token");
            (local, slot)
        });
        let rows: Vec<_> = rows.filter(|(_, slot)| *slot != u32::MAX).collect();
        rows.into_par_iter().with_min_len(64).for_each(|(local, slot)| {
            local.copy_from_slice(tables.emission_of(slot as usize));
        });
        for (sentence, tags) in batch.tags.iter().enumerate() {
            for (i, &tag) in tags.iter().enumerate() {
                let at = self.offsets[sentence] + i;
                let all = &tables.tags[tag as usize * tables.n_states()..][..tables.n_states()];
                let of_states = tables.pick(all, tables.states(self.groups[at] as usize));
                let local = self.local[self.places[at]..self.places[at + 1]].iter_mut();
                local.zip(&*of_states).for_each(|(local, &tag)| *local *= tag);
            }
        }
    }

    /// Σ_t α_t/κ_t ⊗ v_{t+1} of every block that was used.
    fn collect_pairs(&mut self, tables: &Tables<T>, hard: &[usize], out: &mut Expected<T>) {
        let k = tables.k;
        let Engine { offsets, groups: of_tokens, places, alpha, weighted, .. } = self;
        let easy = (0..offsets.len() - 1).filter(|s| hard.binary_search(s).is_err());
        let tokens =
            easy.flat_map(|s| (offsets[s]..offsets[s + 1].max(1) - 1).map(move |at| (at, s)));
        if let Some(lists) = &tables.lists {
            out.ratios.clear();
            let (tokens, sizes) = (tokens.map(|(at, _)| at), tables.n_states());
            return out.listed.fill(lists, sizes, (of_tokens, places), (alpha, weighted), tokens);
        }
        let pairs = tokens.map(|(at, s)| (of_tokens[at], of_tokens[at + 1], at, s));
        let mut pairs: Vec<Member> = pairs.collect();
        let par = if tables.is_dense() { Par::rayon(0) } else { Par::Seq };
        let groups: Vec<_> = groups(&mut pairs).collect();
        let blocks = groups.into_par_iter().map(|(from, to, members)| {
            let stack = |values: &[T], next: usize| -> Vec<T> {
                let rows = members
                    .iter()
                    .map(|&(_, _, at, _)| &values[(at + next) * k..(at + next + 1) * k]);
                rows.flatten().copied().collect()
            };
            let (alpha, weighted) = (stack(alpha, 0), stack(weighted, 1));
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
        let n_states = tables.n_states();
        for (sums, n) in [
            (&mut out.start, n_states),
            (&mut out.left, n_states),
            (&mut out.tags, tables.tags.len()),
        ] {
            sums.clear();
            sums.resize(n, T::zero());
        }
        let node = |at: usize| &self.nodes[self.places[at]..self.places[at + 1]];
        let add_node = |sums: &mut [T], at: usize| {
            add_to_states(sums, tables.states(self.groups[at] as usize), node(at));
        };
        let mut by_slot: Vec<(u32, u32)> = Vec::with_capacity(self.slots.len());
        for (sentence, &log_prob) in log_probs.iter().enumerate() {
            let (begin, end) = (self.offsets[sentence], self.offsets[sentence + 1]);
            if log_prob == f64::NEG_INFINITY || begin == end {
                continue;
            }
            by_slot.extend((begin..end).map(|at| (self.slots[at], at as u32)));
            add_node(&mut out.start, begin);
            (begin..end - 1).for_each(|at| add_node(&mut out.left, at));
            let tags = batch.tags.get(sentence).copied().unwrap_or_default();
            for (i, &tag) in tags.iter().enumerate() {
                add_node(&mut out.tags[tag as usize * n_states..][..n_states], begin + i);
            }
        }
        by_slot.sort_unstable();
        out.slots.clear();
        out.emission.clear();
        for (slot, at) in by_slot {
            let node = node(at as usize);
            if out.slots.last() == Some(&slot) {
                let last = out.emission.len() - node.len();
                add(&mut out.emission[last..], node);
            } else {
                out.slots.push(slot);
                out.emission.extend_from_slice(node);
            }
        }
    }

    pub(crate) fn len(&self, sentence: usize) -> usize {
        self.offsets[sentence + 1] - self.offsets[sentence]
    }
}

/// Adds numbers of some states to those of all.
fn add_to_states<T: Real>(sums: &mut [T], states: States<'_>, values: &[T]) {
    match states {
        States::Cluster(cluster) => {
            add(&mut sums[cluster * values.len()..][..values.len()], values)
        }
        States::List(list) => {
            let values = list.iter().zip(values);
            values.for_each(|(&state, &value)| sums[state as usize] += value);
        }
    }
}
