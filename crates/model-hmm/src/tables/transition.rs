//! Transition probabilities from pairs of vectors, and their gradient.
//!
//! ψ[z, z'] = from_z · to_z', and a(z'|z) is the softmax of a row over all kept states.

use crate::space::kept_lists::KeptLists;
use crate::tables::expected_counts::{Block, ExpectedCounts, blocks_from};
use crate::tables::factors::Factors;
use crate::tables::flush::{flush_derivative, flush_transitions};
use crate::tables::probability_tables::Tables;
use latens_math::linalg::{Accum, MatMut, MatRef, Par};
use latens_math::{Real, softmax};
use latens_nn::multiply;
use rayon::prelude::*;

/// Fills in a and the log normalizers ln Σ exp ψ of its rows from the factors.
///
/// If every state may emit every word, tiny transitions are set to zero; see [`flush_transitions`].
pub(crate) fn forward<T: Real>(tables: &mut Tables<T>) {
    let is_dense = tables.is_dense();
    let Tables { transition, factors, .. } = tables;
    let Factors { dim, from, to, log_sums } = factors.as_mut().expect("transitions have factors");
    let n = from.len() / *dim;
    transition.resize(n * n, T::zero());
    log_sums.resize(n, T::zero());
    let logits = MatMut::from_row_major_slice_mut(&mut transition[..], n, n);
    let from = MatRef::from_row_major_slice(&from[..], n, *dim);
    let to = MatRef::from_row_major_slice(&to[..], n, *dim);
    multiply(logits, Accum::Replace, from, to.transpose(), Par::rayon(0));
    let rows = transition.par_chunks_exact_mut(n).zip(log_sums);
    rows.for_each(|(row, log_sum)| {
        *log_sum = softmax(row);
        if is_dense {
            flush_transitions(row);
        }
    });
}

/// Overwrites a with the derivative of Σ ln p with respect to the logits. With N the expected transitions and
/// n_z = Σ_z' N[z, z'],
///
/// G[z, z'] = N[z, z'] − n_z a(z'|z) = (R[z, z'] − n_z) a(z'|z),  R = N / a,
///
/// where R is zero outside the blocks or pairs of states that the batch used.
pub(crate) fn logit_gradient<T: Real>(tables: &mut Tables<T>, expected: &ExpectedCounts<T>) {
    match &tables.lists {
        Some(lists) => listed_gradient(lists, &mut tables.transition, expected),
        None => blocked_gradient(tables, expected),
    }
    let (k, n) = (tables.k, tables.n_states());
    for block in &expected.counts {
        for (i, counts) in block.values.chunks_exact(k).enumerate() {
            let at = (block.from as usize * k + i) * n + block.to as usize * k;
            let row = tables.transition[at..at + k].iter_mut();
            row.zip(counts).for_each(|(derivative, &count)| *derivative += count);
        }
    }
}

fn listed_gradient<T: Real>(lists: &KeptLists, transition: &mut [T], expected: &ExpectedCounts<T>) {
    let n = expected.departures.len();
    let rows = transition.par_chunks_exact_mut(n).zip(&expected.departures).enumerate();
    rows.for_each_init(
        || vec![T::zero(); n],
        |ratios, (state, (row, &departures))| {
            ratios.fill(T::zero());
            expected.listed.add_row(lists, state, ratios);
            latens_math::vectorized(
                #[inline(always)]
                || scale_segment(row, Some(ratios), departures),
            );
        },
    );
}

fn blocked_gradient<T: Real>(tables: &mut Tables<T>, expected: &ExpectedCounts<T>) {
    let (k, n) = (tables.k, tables.n_states());
    let n_clusters = n / k;
    let clusters = tables.transition.par_chunks_mut(k * n).zip(expected.departures.par_chunks(k));
    clusters.enumerate().for_each(|(from, (rows, departures))| {
        let mut used: Vec<Option<&Block<T>>> = vec![None; n_clusters];
        blocks_from(&expected.ratios, from).for_each(|block| used[block.to as usize] = Some(block));
        latens_math::vectorized(
            #[inline(always)]
            || {
                for (i, (row, &n_z)) in rows.chunks_exact_mut(n).zip(departures).enumerate() {
                    for (segment, block) in row.chunks_exact_mut(k).zip(&used) {
                        let ratios = block.map(
                            #[inline(always)]
                            |block| &block.values[i * k..(i + 1) * k],
                        );
                        scale_segment(segment, ratios, n_z);
                    }
                }
            },
        );
    });
}

#[inline(always)]
fn scale_segment<T: Real>(segment: &mut [T], ratios: Option<&[T]>, n_z: T) {
    match ratios {
        Some(ratios) => {
            let pairs = segment.iter_mut().zip(ratios);
            pairs.for_each(|(a, &ratio)| *a = flush_derivative(*a * (ratio - n_z)));
        }
        None => segment.iter_mut().for_each(|a| *a = flush_derivative(-n_z * *a)),
    }
}

/// Derivatives with respect to the factors, from those with respect to the logits: Σ_z' G[z, z'] to_z' for from_z,
/// and Σ_z G[z, z'] from_z for to_z'. Overwrites `d_from` and adds to `d_to`.
pub(crate) fn factor_gradient<T: Real>(
    tables: &Tables<T>,
    factors: &Factors<T>,
    d_from: MatMut<'_, T>,
    d_to: MatMut<'_, T>,
) {
    let n = tables.n_states();
    let derivatives = MatRef::from_row_major_slice(&tables.transition[..], n, n);
    let from = MatRef::from_row_major_slice(&factors.from[..], n, factors.dim);
    let to = MatRef::from_row_major_slice(&factors.to[..], n, factors.dim);
    multiply(d_from, Accum::Replace, derivatives, to, Par::rayon(0));
    multiply(d_to, Accum::Add, derivatives.transpose(), from, Par::rayon(0));
}
