//! Log-likelihoods and expected counts of a batch.

use crate::recursion::batch::{Batch, Part};
use crate::recursion::dense::{ScaledTransitions, Transitions};
use crate::recursion::dense_lanes::add_node;
use crate::recursion::lanes;
use crate::recursion::log_space::underflowed;
use crate::recursion::products::{Member, add, by_groups, stacked};
use crate::recursion::workspace::Workspace;
use crate::space::state_set::StateSet;
use crate::space::state_space::StateSpace;
use crate::tables::expected_counts::{Block, ExpectedCounts};
use crate::tables::probability_tables::Tables;
use latens_math::chain::log_forward;
use latens_math::linalg::{Accum, MatMut, MatRef, Par};
use latens_math::{Real, log_sum_exp};
use latens_nn::multiply;
use rayon::prelude::*;
use std::sync::{Mutex, PoisonError};

/// Computes log-likelihoods and expected counts, in buffers that batches share.
#[derive(Default)]
pub(crate) struct ForwardBackward<T> {
    /// The buffers that no part of a batch uses at the moment.
    workspaces: Mutex<Vec<Workspace<T>>>,
}

impl<T: Real> ForwardBackward<T> {
    /// Returns ln p of every sentence of a batch.
    pub(crate) fn log_probs(
        &self,
        space: &StateSpace,
        tables: &Tables<T>,
        batch: &Batch<'_>,
    ) -> Vec<f64> {
        let scaled = ScaledTransitions::new(tables);
        let (log_probs, _) = self.in_parts(tables, &scaled, batch, |workspace, batch, a| {
            (workspace.log_probs(space, tables, batch, a), ())
        });
        log_probs
    }

    /// Overwrites `out` with the expected counts of a batch, and returns ln p of every sentence. An impossible
    /// sentence has ln p = −∞ and contributes no counts.
    pub(crate) fn expected_counts(
        &self,
        space: &StateSpace,
        tables: &Tables<T>,
        batch: &Batch<'_>,
        out: &mut ExpectedCounts<T>,
    ) -> Vec<f64> {
        let scaled = ScaledTransitions::with_transposed(tables);
        if n_parts(tables, batch) == 1 {
            let a = Transitions { scaled: &scaled, k: tables.k, par: Par::rayon(0) };
            return self.with_workspace(|workspace| {
                workspace.expected_counts(space, tables, batch, a, out)
            });
        }
        let (log_probs, parts) = self.in_parts(tables, &scaled, batch, |workspace, batch, a| {
            let mut out = ExpectedCounts::default();
            let log_probs = workspace.expected_counts(space, tables, batch, a, &mut out);
            (log_probs, out)
        });
        out.merge(parts, tables.k);
        log_probs
    }

    /// Processes the parts of a batch in parallel, and returns ln p of every sentence with the results of all parts.
    fn in_parts<R: Send>(
        &self,
        tables: &Tables<T>,
        scaled: &ScaledTransitions<T>,
        batch: &Batch<'_>,
        process: impl Fn(&mut Workspace<T>, &Batch<'_>, Transitions<'_, T>) -> (Vec<f64>, R) + Sync,
    ) -> (Vec<f64>, Vec<R>) {
        let parts = batch.parts(n_parts(tables, batch));
        // The matrix products of a single part use all threads.
        let par = if parts.len() == 1 { Par::rayon(0) } else { Par::Seq };
        let a = Transitions { scaled, k: tables.k, par };
        let process =
            |part: &Part<'_>| self.with_workspace(|workspace| process(workspace, &part.batch, a));
        let done: Vec<_> = parts.par_iter().map(process).collect();
        let mut log_probs = vec![0.0; batch.sentences.len()];
        let mut results = vec![];
        for (part, (of_part, result)) in parts.iter().zip(done) {
            part.sentences.iter().zip(of_part).for_each(|(&s, log_prob)| log_probs[s] = log_prob);
            results.push(result);
        }
        (log_probs, results)
    }

    fn with_workspace<R>(&self, use_it: impl FnOnce(&mut Workspace<T>) -> R) -> R {
        let lock = || self.workspaces.lock().unwrap_or_else(PoisonError::into_inner);
        let free = lock().pop();
        let mut workspace = free.unwrap_or_default();
        let result = use_it(&mut workspace);
        lock().push(workspace);
        result
    }
}

/// Number of parts of a batch. The batch of a model with clusters is one part, since tokens of a pair of clusters share a
/// product.
fn n_parts<T: Real>(tables: &Tables<T>, batch: &Batch<'_>) -> usize {
    if tables.is_dense() { lanes::n_parts(batch.n_tokens(), tables.k) } else { 1 }
}

impl<T: Real> Workspace<T> {
    fn log_probs(
        &mut self,
        space: &StateSpace,
        tables: &Tables<T>,
        batch: &Batch<'_>,
        a: Transitions<'_, T>,
    ) -> Vec<f64> {
        self.place(space, tables, batch);
        let mut log_probs = if tables.is_dense() {
            let mut log_probs = vec![0.0; self.n_sentences()];
            self.lanes.forward(tables, a, &mut log_probs);
            log_probs
        } else {
            self.forward(tables)
        };
        log_probs.par_iter_mut().enumerate().for_each(|(sentence, log_prob)| {
            if log_prob.is_nan() {
                let alphas = log_forward(&self.log_chain(tables, sentence));
                *log_prob = log_sum_exp(&alphas[alphas.len() - 1]);
            }
        });
        log_probs
    }

    fn expected_counts(
        &mut self,
        space: &StateSpace,
        tables: &Tables<T>,
        batch: &Batch<'_>,
        a: Transitions<'_, T>,
        out: &mut ExpectedCounts<T>,
    ) -> Vec<f64> {
        self.place(space, tables, batch);
        if tables.is_dense() {
            let mut log_probs = vec![0.0; self.n_sentences()];
            self.lanes.expected_counts(tables, a, &mut log_probs, out);
            let (underflowed, mut counts) = (underflowed(&log_probs), vec![]);
            let count = |sentence: usize, token: usize, node: &[T]| {
                let row = self.lanes.row(self.placed(), sentence as u32, token);
                add_node(row, node, T::one(), out);
                if !row.is_last {
                    add(&mut out.departures, node);
                }
            };
            self.smooth_in_log_space(tables, &underflowed, &mut log_probs, &mut counts, count);
            out.counts = counts;
            return log_probs;
        }
        let mut log_probs = self.forward_backward(tables);
        let underflowed = underflowed(&log_probs);
        let mut nodes = std::mem::take(&mut self.nodes);
        let copy = |_, token: usize, node: &[T]| nodes[self.values(token)].copy_from_slice(node);
        self.smooth_in_log_space(tables, &underflowed, &mut log_probs, &mut out.counts, copy);
        self.nodes = nodes;
        self.collect_pairs(tables, &underflowed, out);
        self.collect_nodes(tables, batch, &log_probs, out);
        log_probs
    }

    /// Computes Σ_t α_t/κ_t ⊗ v_{t+1} for every used block of a model that is not dense, without the sentences that
    /// underflowed.
    fn collect_pairs(
        &mut self,
        tables: &Tables<T>,
        underflowed: &[usize],
        out: &mut ExpectedCounts<T>,
    ) {
        let k = tables.k;
        let Workspace { sentence_starts, groups, value_starts, alpha, weighted, .. } = self;
        let sentences = 0..sentence_starts.len() - 1;
        let sentences = sentences.filter(|s| underflowed.binary_search(s).is_err());
        let tokens = sentences.flat_map(|s| {
            (sentence_starts[s]..sentence_starts[s + 1].max(1) - 1).map(move |at| (at, s))
        });
        if let Some(lists) = &tables.lists {
            out.ratios.clear();
            let (tokens, sizes) = (tokens.map(|(at, _)| at), tables.n_states());
            return out.listed.fill(
                lists,
                sizes,
                (groups, value_starts),
                (alpha, weighted),
                tokens,
            );
        }
        let pairs = tokens.map(|(at, s)| Member::new(groups[at], groups[at + 1], at, s));
        let mut pairs: Vec<Member> = pairs.collect();
        let pairs: Vec<_> = by_groups(&mut pairs).collect();
        let buffers = || (Vec::new(), Vec::new());
        let block = |buffers: &mut (Vec<T>, Vec<T>),
                     (from, to, members): (usize, usize, &[Member])| {
            let alpha = stacked(members, &mut buffers.0, |at| &alpha[at * k..(at + 1) * k]);
            let weighted =
                stacked(members, &mut buffers.1, |at| &weighted[(at + 1) * k..(at + 2) * k]);
            let mut values = vec![T::zero(); k * k];
            let alpha = MatRef::from_row_major_slice(alpha, members.len(), k);
            let weighted = MatRef::from_row_major_slice(weighted, members.len(), k);
            let sums = MatMut::from_row_major_slice_mut(&mut values, k, k);
            multiply(sums, Accum::Replace, alpha.transpose(), weighted, Par::Seq);
            Block { from: from as u32, to: to as u32, values }
        };
        let blocks = pairs.into_par_iter().map_init(buffers, block);
        out.ratios = blocks.collect();
    }

    /// Sums γ up to expected starts, departures, emissions and tags.
    fn collect_nodes(
        &self,
        tables: &Tables<T>,
        batch: &Batch<'_>,
        log_probs: &[f64],
        out: &mut ExpectedCounts<T>,
    ) {
        let n_states = tables.n_states();
        out.clear_nodes(n_states, tables.tags.len());
        let node = |at: usize| &self.nodes[self.values(at)];
        let add_node = |sums: &mut [T], at: usize| {
            add_to_states(sums, tables.states(self.groups[at] as usize), node(at));
        };
        // Slot and token as the digits of one number, which is faster to sort.
        let mut by_slot: Vec<u64> = Vec::with_capacity(self.slots.len());
        for (sentence, &log_prob) in log_probs.iter().enumerate() {
            let (begin, end) = (self.tokens(sentence).start, self.tokens(sentence).end);
            if log_prob == f64::NEG_INFINITY || begin == end {
                continue;
            }
            let tokens = self.slots[begin..end].iter().zip(begin as u64..);
            by_slot.extend(tokens.map(|(&slot, at)| u64::from(slot) << 32 | at));
            add_node(&mut out.start, begin);
            (begin..end - 1).for_each(|at| add_node(&mut out.departures, at));
            let tags = batch.tags.get(sentence).copied().unwrap_or_default();
            for (i, &tag) in tags.iter().enumerate() {
                add_node(&mut out.tags[tag as usize * n_states..][..n_states], begin + i);
            }
        }
        by_slot.sort_unstable();
        for (slot, at) in by_slot.into_iter().map(|number| ((number >> 32) as u32, number as u32)) {
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
}

/// Adds the values of some states to the sums of all states.
fn add_to_states<T: Real>(sums: &mut [T], states: StateSet<'_>, values: &[T]) {
    match states {
        StateSet::Cluster(cluster) => {
            add(&mut sums[cluster * values.len()..][..values.len()], values)
        }
        StateSet::List(list) => {
            let values = list.iter().zip(values);
            values.for_each(|(&state, &value)| sums[state as usize] += value);
        }
    }
}
