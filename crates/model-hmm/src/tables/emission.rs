//! Emission probabilities of word vectors and state vectors, and their gradient.
//!
//! φ[z, x] = f_z · U_x + bias_x, and b(x|z) is the softmax of φ over the words that z may emit. The table
//! has a row for each word, so that the recursion reads the k numbers of a word side by side; a softmax
//! runs down a column.

use crate::recursion::expected_counts::Expected;
use crate::space::state_space::{Lists, Support};
use crate::tables::listed_emission;
use crate::tables::probability_tables::{Kept, Tables};
use crate::tables::transition::without_dust;
use faer::{Accum, MatMut, MatRef, Par};
use latens_math::{Real, softmax_columns};
use latens_nn::multiply;
use rayon::prelude::*;

/// A word that a state may emit has at least this probability: a finite logit is no impossibility, though
/// its exponential can be too small for single precision.
pub(crate) const SMALLEST_PROBABILITY: f64 = 1e-37;

/// Word vectors, their biases, and the vectors of the states that take part.
#[derive(Clone, Copy)]
pub(crate) struct Vectors<'a, T> {
    /// A row of `dim` numbers for each slot.
    pub(crate) words: &'a [T],
    pub(crate) bias: &'a [T],
    /// A row for each state that takes part.
    pub(crate) states: &'a [T],
    pub(crate) dim: usize,
}

impl<'a, T> Vectors<'a, T> {
    /// The vector of the word of a slot.
    #[inline(always)]
    pub(crate) fn word(&self, slot: usize) -> &'a [T] {
        &self.words[slot * self.dim..(slot + 1) * self.dim]
    }

    /// The vector of one of the states that take part.
    #[inline(always)]
    pub(crate) fn state(&self, i: usize) -> &'a [T] {
        &self.states[i * self.dim..(i + 1) * self.dim]
    }
}

/// Where the derivatives of [`Vectors`] go.
pub(crate) struct Gradients<'a, T> {
    /// Added to.
    pub(crate) words: &'a mut [T],
    /// Added to.
    pub(crate) bias: &'a mut [T],
    /// Overwritten.
    pub(crate) states: &'a mut [T],
}

/// Overwrites b of `tables`: for each slot the states that may emit it.
pub(crate) fn forward<T: Real>(
    support: &Support,
    kept: &Kept,
    vectors: Vectors<'_, T>,
    tables: &mut Tables<T>,
) {
    tables.lists = support.kept_lists(kept);
    let out = &mut tables.emission;
    if let Some(lists) = &tables.lists {
        return listed_emission::forward(lists, kept.states.len(), vectors, out);
    }
    out.resize(support.n_slots() * kept.k, T::zero());
    each_cluster(cut(support, kept.k, out), |cluster, table, par| {
        let (slots, states) = (support.slots(cluster), cluster * kept.k..(cluster + 1) * kept.k);
        let logits = MatMut::from_row_major_slice_mut(table, slots.len(), kept.k);
        let words = rows(vectors.words, vectors.dim, slots.clone());
        let states = rows(vectors.states, vectors.dim, states);
        multiply(logits, Accum::Replace, words, states.transpose(), par);
        table.par_chunks_exact_mut(kept.k).zip(slots).for_each(|(row, slot)| {
            row.iter_mut().for_each(|logit| *logit += vectors.bias[slot]);
        });
        normalize(support, kept, cluster, table);
    });
}

/// The same where `logits` writes the logits of a slot, given the states that may emit it.
pub(crate) fn forward_of_logits<T: Real>(
    support: &Support,
    kept: &Kept,
    tables: &mut Tables<T>,
    logits: impl Fn(usize, &[u32], &mut [T]) + Sync,
) {
    tables.lists = support.kept_lists(kept);
    let out = &mut tables.emission;
    if let Some(lists) = &tables.lists {
        return listed_emission::forward_of_logits(lists, kept, out, logits);
    }
    out.resize(support.n_slots() * kept.k, T::zero());
    each_cluster(cut(support, kept.k, out), |cluster, table, _| {
        let states = &kept.states[cluster * kept.k..(cluster + 1) * kept.k];
        let rows = table.par_chunks_exact_mut(kept.k).zip(support.slots(cluster));
        rows.for_each(|(row, slot)| logits(slot, states, row));
        normalize(support, kept, cluster, table);
    });
}

/// Logits of a cluster ─▶ probabilities.
fn normalize<T: Real>(support: &Support, kept: &Kept, cluster: usize, table: &mut [T]) {
    let forbid_all = |table: &mut [T], value: T| {
        let Some(lists) = &support.lists else { return };
        let rows = table.par_chunks_exact_mut(kept.k).zip(support.slots(cluster));
        rows.for_each(|(row, slot)| forbid(row, lists, slot, kept, value));
    };
    forbid_all(table, T::neg_infinity());
    softmax_columns(table, &mut vec![T::zero(); kept.k]);
    let floor = T::of(SMALLEST_PROBABILITY);
    table.par_chunks_mut(1 << 14).for_each(|values| {
        values.iter_mut().for_each(|b| *b = if *b < floor { floor } else { *b });
    });
    forbid_all(table, T::zero());
}

/// Writes `value` for all states that may not emit the word.
fn forbid<T: Real>(row: &mut [T], lists: &Lists, slot: usize, kept: &Kept, value: T) {
    let mut allowed = lists.of(slot).iter().peekable();
    for (entry, state) in row.iter_mut().zip(&kept.states) {
        while allowed.next_if(|&other| other < state).is_some() {}
        if allowed.peek() != Some(&state) {
            *entry = value;
        }
    }
}

/// The gradient of Σ ln p. With N the expected emissions and n_z = Σ_x N[x, z], the derivative by a logit is
///
/// G[x, z] = N[x, z] − n_z b(x|z);
///
/// by f_z it is Σ_x G[x, z] U_x, by U_x it is Σ_z G[x, z] f_z, by bias_x it is Σ_z G[x, z]. b of `tables` is
/// overwritten with G.
pub(crate) fn backward<T: Real>(
    support: &Support,
    kept: &Kept,
    vectors: Vectors<'_, T>,
    tables: &mut Tables<T>,
    expected: &Expected<T>,
    gradients: Gradients<'_, T>,
) {
    let table = &mut tables.emission;
    if let Some(lists) = &tables.lists {
        return listed_emission::backward(lists, vectors, table, expected, gradients);
    }
    let (k, dim) = (kept.k, vectors.dim);
    let work: Vec<_> = cut(support, k, table)
        .into_iter()
        .zip(cut(support, dim, gradients.words))
        .zip(cut(support, 1, gradients.bias))
        .zip(split_rows(gradients.states, dim, (0..support.n_clusters()).map(|_| k)))
        .collect();
    each_cluster(work, |cluster, (((table, d_words), d_bias), d_states), par| {
        let slots = support.slots(cluster);
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

/// Overwrites b with G.
pub(crate) fn backward_to_logits<T: Real>(
    support: &Support,
    kept: &Kept,
    tables: &mut Tables<T>,
    expected: &Expected<T>,
) {
    let table = &mut tables.emission;
    if let Some(lists) = &tables.lists {
        return listed_emission::logit_gradient(lists, kept.states.len(), table, expected);
    }
    each_cluster(cut(support, kept.k, table), |cluster, table, _| {
        logit_gradient(support.slots(cluster), kept.k, table, expected);
    });
}

/// b ─▶ G = N − n ∘ b, for the slots of one cluster.
fn logit_gradient<T: Real>(
    slots: std::ops::Range<usize>,
    k: usize,
    table: &mut [T],
    expected: &Expected<T>,
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
        row.iter_mut().zip(&totals).for_each(|(b, &total)| *b = without_dust(-total * *b));
    });
    for (&slot, counts) in emitted() {
        let at = (slot as usize - slots.start) * k;
        table[at..at + k].iter_mut().zip(counts).for_each(|(b, &count)| *b += count);
    }
}

/// The part of a table of `dim` numbers a slot that belongs to each cluster.
fn cut<'a, T>(support: &Support, dim: usize, table: &'a mut [T]) -> Vec<&'a mut [T]> {
    split_rows(table, dim, (0..support.n_clusters()).map(|cluster| support.slots(cluster).len()))
}

/// Few clusters are worked on one after the other, each by all threads; many are shared out to threads.
fn each_cluster<W: Send>(mut work: Vec<W>, one: impl Fn(usize, &mut W, Par) + Sync) {
    if work.len() < 16 {
        work.iter_mut().enumerate().for_each(|(cluster, work)| one(cluster, work, Par::rayon(0)));
    } else {
        let work = work.par_iter_mut().enumerate();
        work.for_each(|(cluster, work)| one(cluster, work, Par::Seq));
    }
}

fn rows<T>(values: &[T], dim: usize, range: std::ops::Range<usize>) -> MatRef<'_, T> {
    let n_rows = range.len();
    MatRef::from_row_major_slice(&values[range.start * dim..range.end * dim], n_rows, dim)
}

/// Cuts rows of `dim` numbers into groups of as many rows as the counts say.
pub(crate) fn split_rows<T>(
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
