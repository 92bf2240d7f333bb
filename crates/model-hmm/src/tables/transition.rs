//! Transition probabilities of pairs of vectors, and their gradient.
//!
//! ψ[z, z'] = from_z · to_z', and a(z'|z) is the softmax of a row over all states that take part.

use crate::recursion::expected_counts::{Block, Expected};
use crate::recursion::scaled::SMALLEST_TRANSITION;
use crate::space::kept_lists::KeptLists;
use crate::tables::probability_tables::{Factors, Tables};
use faer::{Accum, MatMut, MatRef, Par};
use latens_math::{Real, softmax};
use latens_nn::multiply;
use rayon::prelude::*;

/// Fills `transition` with a (without what is too small to matter, if all words share all states), and the factors' sums with ln Σ exp ψ of each row.
pub(crate) fn forward<T: Real>(factors: &mut Factors<T>, is_dense: bool, transition: &mut Vec<T>) {
    let Factors { dim, from, to, log_sums } = factors;
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
            remove_dust(row);
        }
    });
}

/// Zero for what is too small to matter; see [`SMALLEST_TRANSITION`].
pub(crate) fn remove_dust<T: Real>(row: &mut [T]) {
    let smallest = T::of(SMALLEST_TRANSITION);
    row.iter_mut().for_each(|a| *a = if *a < smallest { T::zero() } else { *a });
}

/// Overwrites a with the derivative of Σ ln p by the logits: with N the expected transitions and
/// n_z = Σ_z' N[z, z'],
///
/// G[z, z'] = N[z, z'] − n_z a(z'|z) = (R[z, z'] − n_z) a(z'|z),  R = N / a,
///
/// where R is zero but in the blocks, or for the pairs of states, that were used.
pub(crate) fn logit_gradient<T: Real>(tables: &mut Tables<T>, expected: &Expected<T>) {
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

fn listed_gradient<T: Real>(lists: &KeptLists, transition: &mut [T], expected: &Expected<T>) {
    let n = expected.left.len();
    let rows = transition.par_chunks_exact_mut(n).zip(&expected.left).enumerate();
    rows.for_each_init(
        || vec![T::zero(); n],
        |ratios, (state, (row, &left))| {
            ratios.fill(T::zero());
            expected.listed.add_row(lists, state, ratios);
            pulp::Arch::new().dispatch(
                #[inline(always)]
                || scale_segment(row, Some(ratios), left),
            );
        },
    );
}

fn blocked_gradient<T: Real>(tables: &mut Tables<T>, expected: &Expected<T>) {
    let (k, n) = (tables.k, tables.n_states());
    let n_clusters = n / k;
    let clusters = tables.transition.par_chunks_mut(k * n).zip(expected.left.par_chunks(k));
    clusters.enumerate().for_each(|(from, (rows, left))| {
        let mut used: Vec<Option<&Block<T>>> = vec![None; n_clusters];
        blocks_from(&expected.ratios, from).for_each(|block| used[block.to as usize] = Some(block));
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                for (i, (row, &left)) in rows.chunks_exact_mut(n).zip(left).enumerate() {
                    for (segment, block) in row.chunks_exact_mut(k).zip(&used) {
                        let ratios = block.map(
                            #[inline(always)]
                            |block| &block.values[i * k..(i + 1) * k],
                        );
                        scale_segment(segment, ratios, left);
                    }
                }
            },
        );
    });
}

#[inline(always)]
fn scale_segment<T: Real>(segment: &mut [T], ratios: Option<&[T]>, left: T) {
    match ratios {
        Some(ratios) => {
            let pairs = segment.iter_mut().zip(ratios);
            pairs.for_each(|(a, &ratio)| *a = without_dust(*a * (ratio - left)));
        }
        None => segment.iter_mut().for_each(|a| *a = without_dust(-left * *a)),
    }
}

/// Zero for a derivative that is too small to matter: products of such numbers would be subnormal ones,
/// with which processors are a hundred times slower.
#[inline(always)]
pub(crate) fn without_dust<T: Real>(derivative: T) -> T {
    /// Against the derivatives of a batch, which add up to about its tokens.
    const SMALLEST: f64 = 1e-20;
    let smallest = T::of(SMALLEST);
    let is_dust = (derivative < smallest) & (derivative > -smallest);
    if is_dust { T::zero() } else { derivative }
}

/// The blocks that lead away from a cluster, of blocks in order.
pub(crate) fn blocks_from<T>(blocks: &[Block<T>], from: usize) -> impl Iterator<Item = &Block<T>> {
    let begin = blocks.partition_point(|block| (block.from as usize) < from);
    blocks[begin..].iter().take_while(move |block| block.from as usize == from)
}

/// The derivatives by the factors, of those by the logits: by from_z it is Σ_z' G[z, z'] to_z', by to_z' it is
/// Σ_z G[z, z'] from_z. `d_from` is overwritten, `d_to` is added to.
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
