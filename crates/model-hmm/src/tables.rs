//! The probabilities of a model, or of the part of it that a mini-batch uses.

use crate::support::{Support, draw_subset};
use faer::{Accum, MatMut, MatRef, Par};
use latens_corpus::WordId;
use latens_math::{Real, Rng, softmax};
use latens_nn::multiply;
use rayon::prelude::*;
use std::ops::Range;

/// The states that take part in a mini-batch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kept {
    /// How many states of each cluster take part.
    pub(crate) k: usize,
    /// Which ones: ascending, and so in the order of clusters.
    pub(crate) states: Vec<u32>,
}

impl Kept {
    /// All states.
    pub(crate) fn all(support: &Support) -> Kept {
        Kept { k: support.k, states: (0..support.n_states() as u32).collect() }
    }

    /// State dropout: of every cluster exactly (1 − p)·k states take part, all subsets of this size alike
    /// (Chiu and Rush 2020, §5.1). A word of a list of its own that lost all its states gets its first one
    /// back.
    pub(crate) fn draw(support: &Support, dropout: f64, rng: &mut Rng) -> Kept {
        let k = (((1.0 - dropout) * support.k as f64).round() as usize).max(1);
        if k == support.k {
            return Kept::all(support);
        }
        let mut states = Vec::with_capacity(k * support.n_clusters());
        for cluster in 0..support.n_clusters() {
            let first = (cluster * support.k) as u32;
            states.extend(draw_subset(support.k, k, rng).iter().map(|state| first + state));
        }
        let Some(lists) = &support.lists else { return Kept { k, states } };
        for slot in 0..support.n_slots() {
            let list = lists.of(slot);
            if !list.iter().any(|state| states.binary_search(state).is_ok()) {
                let at = states.binary_search(&list[0]).unwrap_err();
                states.insert(at, list[0]);
            }
        }
        Kept { k: states.len(), states }
    }
}

/// The probabilities of the states that take part; k is their number in each cluster, Z = m·k in all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables<T> {
    pub(crate) k: usize,
    /// π: Z.
    pub(crate) start: Vec<T>,
    /// a: Z × Z, row by row; empty where it is too large to be held, and only scores are asked for.
    pub(crate) transition: Vec<T>,
    /// b: for each slot k, the states of its cluster.
    pub(crate) emission: Vec<T>,
    /// g: for each tag Z; empty if the model knows no tags.
    pub(crate) tags: Vec<T>,
    /// What the transitions are made of, if they are made of something.
    pub(crate) factors: Option<Factors<T>>,
}

/// Transitions as products: ln a(j|i) = fromᵢ · toⱼ − log_sumᵢ. It keeps what is too small for a
/// probability.
#[derive(Clone, Debug, Default)]
pub(crate) struct Factors<T> {
    pub(crate) dim: usize,
    /// Z × dim.
    pub(crate) from: Vec<T>,
    /// Z × dim.
    pub(crate) to: Vec<T>,
    /// Z.
    pub(crate) log_sums: Vec<T>,
}

impl<T: Real> Tables<T> {
    pub(crate) fn n_states(&self) -> usize {
        self.start.len()
    }

    /// ln a of every pair of a state of one cluster and a state of another.
    pub(crate) fn log_block(&self, from: usize, to: usize) -> Vec<f64> {
        let (k, n) = (self.k, self.n_states());
        let states = |cluster: usize| cluster * k..(cluster + 1) * k;
        match &self.factors {
            Some(factors) => {
                let rows = |values, cluster| rows(values, factors.dim, states(cluster));
                let log_sums = factors.log_sums[states(from)].iter();
                log_probs(rows(&factors.from, from), rows(&factors.to, to), log_sums)
            }
            None => {
                let rows = states(from).flat_map(|i| &self.transition[i * n..][states(to)]);
                rows.map(|a| a.wide().ln()).collect()
            }
        }
    }
}

impl<T: Real> Factors<T> {
    /// Fills the sums: ln Σ exp of every row of products. They are made in tiles, so that never all products
    /// are in memory.
    pub(crate) fn sum_up(&mut self) {
        const TILE: usize = 64;
        let Factors { dim, from, to, log_sums } = self;
        let n = from.len() / *dim;
        let to = MatRef::from_row_major_slice(&to[..], n, *dim);
        log_sums.resize(n, T::zero());
        let tiles = from.par_chunks(TILE * *dim).zip(log_sums.par_chunks_mut(TILE));
        tiles.for_each(|(from, log_sums)| {
            let mut logits = vec![T::zero(); log_sums.len() * n];
            let from = MatRef::from_row_major_slice(from, log_sums.len(), *dim);
            let out = MatMut::from_row_major_slice_mut(&mut logits, log_sums.len(), n);
            multiply(out, Accum::Replace, from, to.transpose(), Par::Seq);
            log_sums.iter_mut().zip(logits.chunks_exact_mut(n)).for_each(|(log_sum, row)| {
                *log_sum = softmax(row);
            });
        });
    }

    /// exp(fromᵢ · toⱼ − log_sumᵢ) of some states and others, row by row.
    pub(crate) fn block(&self, from: Range<usize>, to: Range<usize>) -> Vec<T> {
        let mut block = vec![T::zero(); from.len() * to.len()];
        let logits = MatMut::from_row_major_slice_mut(&mut block, from.len(), to.len());
        let left = rows(&self.from, self.dim, from.clone());
        let right = rows(&self.to, self.dim, to.clone());
        multiply(logits, Accum::Replace, left, right.transpose(), Par::Seq);
        for (row, &log_sum) in block.chunks_exact_mut(to.len()).zip(&self.log_sums[from]) {
            row.iter_mut().for_each(|logit| *logit = (*logit - log_sum).exp_of());
        }
        block
    }
}

fn rows<T>(values: &[T], dim: usize, range: Range<usize>) -> MatRef<'_, T> {
    let n_rows = range.len();
    MatRef::from_row_major_slice(&values[range.start * dim..range.end * dim], n_rows, dim)
}

/// fromᵢ · toⱼ − log_sumᵢ of all pairs of rows.
pub(crate) fn log_probs<'a, T: Real>(
    from: MatRef<'_, T>,
    to: MatRef<'_, T>,
    log_sums: impl Iterator<Item = &'a T>,
) -> Vec<f64> {
    let mut logits = vec![T::zero(); from.nrows() * to.nrows()];
    let out = MatMut::from_row_major_slice_mut(&mut logits, from.nrows(), to.nrows());
    multiply(out, Accum::Replace, from, to.transpose(), Par::Seq);
    let rows = logits.chunks_exact(to.nrows()).zip(log_sums);
    rows.flat_map(|(row, log_sum)| row.iter().map(|logit| logit.wide() - log_sum.wide())).collect()
}

/// Sentences that are learned from together, some with a tag for each word (but not for `<eos>`).
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch<'a> {
    pub(crate) sentences: Vec<&'a [WordId]>,
    pub(crate) tags: Vec<&'a [u32]>,
}

impl Batch<'_> {
    pub(crate) fn n_tokens(&self) -> usize {
        self.sentences.iter().map(|sentence| sentence.len()).sum()
    }
}
