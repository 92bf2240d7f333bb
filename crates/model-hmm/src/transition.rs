//! Transition probabilities of pairs of vectors, and their gradient.
//!
//! ψ[z, z'] = from_z · to_z', and a(z'|z) is the softmax of a row over all states that take part.

use crate::expectations::{Block, Expected};
use crate::tables::{Factors, Tables};
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use latens_math::{Real, softmax};
use rayon::prelude::*;

/// Fills `transition` with a, and the factors' sums with ln Σ exp ψ of each row.
pub(crate) fn forward<T: Real>(factors: &mut Factors<T>, transition: &mut Vec<T>) {
    let Factors { dim, from, to, log_sums } = factors;
    let n = from.len() / *dim;
    transition.resize(n * n, T::zero());
    log_sums.resize(n, T::zero());
    let logits = MatMut::from_row_major_slice_mut(&mut transition[..], n, n);
    let from = MatRef::from_row_major_slice(&from[..], n, *dim);
    let to = MatRef::from_row_major_slice(&to[..], n, *dim);
    matmul(logits, Accum::Replace, from, to.transpose(), T::one(), Par::rayon(0));
    let rows = transition.par_chunks_exact_mut(n).zip(log_sums);
    rows.for_each(|(row, log_sum)| *log_sum = softmax(row));
}

/// Overwrites a with the derivative of Σ ln p by the logits: with N the expected transitions and
/// n_z = Σ_z' N[z, z'],
///
/// G[z, z'] = N[z, z'] − n_z a(z'|z) = (R[z, z'] − n_z) a(z'|z),  R = N / a,
///
/// where R is zero but in the blocks that were used.
pub(crate) fn logit_gradient<T: Real>(tables: &mut Tables<T>, expected: &Expected<T>) {
    let (k, n) = (tables.k, tables.n_states());
    let n_clusters = n / k;
    let clusters = tables.transition.par_chunks_mut(k * n).zip(expected.left.par_chunks(k));
    clusters.enumerate().for_each(|(from, (rows, left))| {
        let mut used: Vec<Option<&Block<T>>> = vec![None; n_clusters];
        blocks_from(&expected.ratios, from).for_each(|block| used[block.to as usize] = Some(block));
        for (i, (row, &left)) in rows.chunks_exact_mut(n).zip(left).enumerate() {
            for (segment, block) in row.chunks_exact_mut(k).zip(&used) {
                scale_segment(segment, block.map(|block| &block.values[i * k..(i + 1) * k]), left);
            }
        }
    });
    for block in &expected.counts {
        for (i, counts) in block.values.chunks_exact(k).enumerate() {
            let at = (block.from as usize * k + i) * n + block.to as usize * k;
            let row = tables.transition[at..at + k].iter_mut();
            row.zip(counts).for_each(|(derivative, &count)| *derivative += count);
        }
    }
}

#[inline]
fn scale_segment<T: Real>(segment: &mut [T], ratios: Option<&[T]>, left: T) {
    match ratios {
        Some(ratios) => {
            let pairs = segment.iter_mut().zip(ratios);
            pairs.for_each(|(a, &ratio)| *a *= ratio - left);
        }
        None => segment.iter_mut().for_each(|a| *a *= -left),
    }
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
    matmul(d_from, Accum::Replace, derivatives, to, T::one(), Par::rayon(0));
    matmul(d_to, Accum::Add, derivatives.transpose(), from, T::one(), Par::rayon(0));
}
