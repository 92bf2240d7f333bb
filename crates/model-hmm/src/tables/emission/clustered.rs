//! Emission probabilities from word vectors and state vectors, and their gradient.
//!
//! φ[z, x] = f_z · U_x + bias_x, and b(x|z) is the softmax of φ over the words that z may emit. The table
//! has one row per word, so that the recursion reads the k entries of a word contiguously; the softmax runs over
//! columns.

use crate::space::kept_lists::KeptLists;
use crate::space::kept_states::KeptStates;
use crate::space::state_lists::StateLists;
use crate::space::state_space::StateSpace;
use crate::tables::emission::listed;
use crate::tables::emission::vectors::{SMALLEST_PROBABILITY, VectorGradients, Vectors};
use crate::tables::expected_counts::ExpectedCounts;
use crate::tables::flush::flush_derivative;
use crate::tables::probability_tables::Tables;
use latens_math::linalg::{Accum, MatMut, MatRef, Par};
use latens_math::{Real, softmax_columns};
use latens_nn::multiply;
use rayon::prelude::*;
use std::ops::Range;

/// Overwrites b of `tables` with the softmax of the logits φ.
pub(crate) fn forward<T: Real>(
    space: &StateSpace,
    kept: &KeptStates,
    vectors: Vectors<'_, T>,
    tables: &mut Tables<T>,
) {
    tables.lists = KeptLists::short(space, kept);
    let out = &mut tables.emission;
    if let Some(lists) = &tables.lists {
        return listed::forward(lists, kept.states.len(), vectors, out);
    }
    out.resize(space.n_slots() * kept.k, T::zero());
    each_cluster(by_cluster(space, kept.k, out), |cluster, table, par| {
        let (slots, states) = (space.slots(cluster), cluster * kept.k..(cluster + 1) * kept.k);
        let logits = MatMut::from_row_major_slice_mut(table, slots.len(), kept.k);
        let words = rows(vectors.words, vectors.dim, slots.clone());
        let states = rows(vectors.states, vectors.dim, states);
        multiply(logits, Accum::Replace, words, states.transpose(), par);
        table.par_chunks_exact_mut(kept.k).zip(slots).for_each(|(row, slot)| {
            row.iter_mut().for_each(|logit| *logit += vectors.bias[slot]);
        });
        normalize(space, kept, cluster, table);
    });
}

/// Overwrites b of `tables` with the softmax of the logits that `logits` writes, given a slot and the states that may
/// emit it.
pub(crate) fn forward_of_logits<T: Real>(
    space: &StateSpace,
    kept: &KeptStates,
    tables: &mut Tables<T>,
    logits: impl Fn(usize, &[u32], &mut [T]) + Sync,
) {
    tables.lists = KeptLists::short(space, kept);
    let out = &mut tables.emission;
    if let Some(lists) = &tables.lists {
        return listed::forward_of_logits(lists, kept, out, logits);
    }
    out.resize(space.n_slots() * kept.k, T::zero());
    each_cluster(by_cluster(space, kept.k, out), |cluster, table, _| {
        let states = &kept.states[cluster * kept.k..(cluster + 1) * kept.k];
        let rows = table.par_chunks_exact_mut(kept.k).zip(space.slots(cluster));
        rows.for_each(|(row, slot)| logits(slot, states, row));
        normalize(space, kept, cluster, table);
    });
}

/// Converts the logits of a cluster to probabilities.
fn normalize<T: Real>(space: &StateSpace, kept: &KeptStates, cluster: usize, table: &mut [T]) {
    let set_forbidden = |table: &mut [T], value: T| {
        let Some(lists) = &space.lists else { return };
        let rows = table.par_chunks_exact_mut(kept.k).zip(space.slots(cluster));
        rows.for_each(|(row, slot)| forbid(row, lists, slot, kept, value));
    };
    set_forbidden(table, T::neg_infinity());
    softmax_columns(table, &mut vec![T::zero(); kept.k]);
    let floor = T::of(SMALLEST_PROBABILITY);
    table.par_chunks_mut(1 << 14).for_each(|values| {
        values.iter_mut().for_each(|b| *b = if *b < floor { floor } else { *b });
    });
    set_forbidden(table, T::zero());
}

/// Writes `value` into the entries of all states that may not emit the word.
fn forbid<T: Real>(row: &mut [T], lists: &StateLists, slot: usize, kept: &KeptStates, value: T) {
    let mut allowed = lists.of(slot).iter().peekable();
    for (entry, state) in row.iter_mut().zip(&kept.states) {
        while allowed.next_if(|&other| other < state).is_some() {}
        if allowed.peek() != Some(&state) {
            *entry = value;
        }
    }
}

/// Computes the gradient of Σ ln p. With N the expected emissions and n_z = Σ_x N[x, z], the derivative with respect
/// to a logit is
///
/// G[x, z] = N[x, z] − n_z b(x|z);
///
/// with respect to f_z it is Σ_x G[x, z] U_x, to U_x it is Σ_z G[x, z] f_z, to bias_x it is Σ_z G[x, z]. Overwrites b
/// of `tables` with G.
pub(crate) fn backward<T: Real>(
    space: &StateSpace,
    kept: &KeptStates,
    vectors: Vectors<'_, T>,
    tables: &mut Tables<T>,
    expected: &ExpectedCounts<T>,
    gradients: VectorGradients<'_, T>,
) {
    let table = &mut tables.emission;
    if let Some(lists) = &tables.lists {
        return listed::backward(lists, vectors, table, expected, gradients);
    }
    let (k, dim) = (kept.k, vectors.dim);
    let work: Vec<_> = by_cluster(space, k, table)
        .into_iter()
        .zip(by_cluster(space, dim, gradients.words))
        .zip(by_cluster(space, 1, gradients.bias))
        .zip(split_rows(gradients.states, dim, (0..space.n_clusters()).map(|_| k)))
        .collect();
    each_cluster(work, |cluster, (((table, d_words), d_bias), d_states), par| {
        let slots = space.slots(cluster);
        logit_gradient(slots.clone(), k, table, expected);
        let derivatives = MatRef::from_row_major_slice(table, slots.len(), k);
        let words = rows(vectors.words, dim, slots.clone());
        let states = rows(vectors.states, dim, cluster * k..(cluster + 1) * k);
        let d_words = MatMut::from_row_major_slice_mut(d_words, slots.len(), dim);
        multiply(d_words, Accum::Add, derivatives, states, par);
        let d_states = MatMut::from_row_major_slice_mut(d_states, k, dim);
        multiply(d_states, Accum::Replace, derivatives.transpose(), words, par);
        d_bias.par_iter_mut().zip(table.par_chunks_exact(k)).for_each(|(d_bias, row)| {
            *d_bias += row.iter().copied().sum::<T>();
        });
    });
}

/// Overwrites b of `tables` with G, the derivative with respect to the logits.
pub(crate) fn backward_to_logits<T: Real>(
    space: &StateSpace,
    kept: &KeptStates,
    tables: &mut Tables<T>,
    expected: &ExpectedCounts<T>,
) {
    let table = &mut tables.emission;
    if let Some(lists) = &tables.lists {
        return listed::logit_gradient(lists, kept.states.len(), table, expected);
    }
    each_cluster(by_cluster(space, kept.k, table), |cluster, table, _| {
        logit_gradient(space.slots(cluster), kept.k, table, expected);
    });
}

/// Overwrites b with G = N − n ∘ b for the slots of one cluster.
fn logit_gradient<T: Real>(
    slots: Range<usize>,
    k: usize,
    table: &mut [T],
    expected: &ExpectedCounts<T>,
) {
    let begin = expected.slots.partition_point(|&slot| (slot as usize) < slots.start);
    let end = expected.slots.partition_point(|&slot| (slot as usize) < slots.end);
    let emitted = || {
        let counts = expected.emission[begin * k..end * k].chunks_exact(k);
        expected.slots[begin..end].iter().zip(counts)
    };
    let mut totals = vec![T::zero(); k];
    for (_, counts) in emitted() {
        totals.iter_mut().zip(counts).for_each(|(total, &count)| *total += count);
    }
    table.par_chunks_exact_mut(k).for_each(|row| {
        row.iter_mut().zip(&totals).for_each(|(b, &total)| *b = flush_derivative(-total * *b));
    });
    for (&slot, counts) in emitted() {
        let at = (slot as usize - slots.start) * k;
        table[at..at + k].iter_mut().zip(counts).for_each(|(b, &count)| *b += count);
    }
}

/// Splits a table of `dim` numbers per slot by cluster.
fn by_cluster<'a, T>(space: &StateSpace, dim: usize, table: &'a mut [T]) -> Vec<&'a mut [T]> {
    split_rows(table, dim, (0..space.n_clusters()).map(|cluster| space.slots(cluster).len()))
}

/// Runs `one` on every cluster: few clusters one after the other with all threads each, many in parallel.
fn each_cluster<W: Send>(mut work: Vec<W>, one: impl Fn(usize, &mut W, Par) + Sync) {
    if work.len() < 16 {
        work.iter_mut().enumerate().for_each(|(cluster, work)| one(cluster, work, Par::rayon(0)));
    } else {
        let work = work.par_iter_mut().enumerate();
        work.for_each(|(cluster, work)| one(cluster, work, Par::Seq));
    }
}

fn rows<T>(values: &[T], dim: usize, range: Range<usize>) -> MatRef<'_, T> {
    let n_rows = range.len();
    MatRef::from_row_major_slice(&values[range.start * dim..range.end * dim], n_rows, dim)
}

/// Splits rows of `dim` numbers into groups with the given numbers of rows.
fn split_rows<T>(
    values: &mut [T],
    dim: usize,
    counts: impl Iterator<Item = usize>,
) -> Vec<&mut [T]> {
    let mut rest = values;
    let mut parts = Vec::new();
    for count in counts {
        let (head, tail) = rest.split_at_mut(count * dim);
        parts.push(head);
        rest = tail;
    }
    parts
}
