//! The probabilities of a model, or of the part of it that a mini-batch uses.

use crate::fitted::block_cache::States;
use crate::space::kept_lists::KeptLists;
use crate::space::state_space::{Support, draw_subset};
use faer::{Accum, MatMut, MatRef, Par};
use latens_corpus::WordId;
use latens_math::{Real, Rng, softmax};
use latens_nn::multiply;
use rayon::prelude::*;
use std::borrow::Cow;
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
    /// b: for each slot k, the states of its cluster; or those of its list, if there are lists.
    pub(crate) emission: Vec<T>,
    /// The states of each slot, where words have short lists of them.
    pub(crate) lists: Option<KeptLists>,
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

    /// Whether all words share all states.
    pub(crate) fn is_dense(&self) -> bool {
        self.k == self.n_states() && self.lists.is_none()
    }

    /// The states of a group of words: of a cluster, or of a slot where each has a list.
    pub(crate) fn states(&self, group: usize) -> States<'_> {
        match &self.lists {
            Some(lists) => States::List(lists.of(group)),
            None => States::Cluster(group),
        }
    }

    /// b of the states of a slot.
    pub(crate) fn emission_of(&self, slot: usize) -> &[T] {
        match &self.lists {
            Some(lists) => &self.emission[lists.range(slot)],
            None => &self.emission[slot * self.k..(slot + 1) * self.k],
        }
    }

    /// Makes b a table of all states for each slot where it is one of lists.
    pub(crate) fn list_all_states(&mut self) {
        if let Some(lists) = self.lists.take() {
            self.emission = lists.scatter(&self.emission, self.n_states());
        }
    }

    /// Some states' share of numbers of all states.
    pub(crate) fn pick<'a>(&self, values: &'a [T], states: States<'_>) -> Cow<'a, [T]> {
        match states {
            States::Cluster(cluster) => {
                Cow::Borrowed(&values[cluster * self.k..(cluster + 1) * self.k])
            }
            States::List(list) => list.iter().map(|&state| values[state as usize]).collect(),
        }
    }

    /// a of every pair of states of two lists, row by row.
    pub(crate) fn pairs(&self, from: &[u32], to: &[u32]) -> Vec<T> {
        if self.transition.is_empty() {
            let factors = self.factors.as_ref().expect("there is no table without factors");
            return factors.pairs(from, to);
        }
        let mut pairs = Vec::with_capacity(from.len() * to.len());
        for row in from.iter().map(|&state| self.row(state)) {
            pairs.extend(to.iter().map(|&state| row[state as usize]));
        }
        pairs
    }

    /// ln a of every pair of states.
    pub(crate) fn log_pairs(&self, from: States<'_>, to: States<'_>) -> Vec<f64> {
        let (from, to) = (from.list(self.k), to.list(self.k));
        match &self.factors {
            Some(factors) => factors.log_pairs(&from, &to),
            None => self.pairs(&from, &to).iter().map(|a| a.wide().ln()).collect(),
        }
    }

    fn row(&self, state: u32) -> &[T] {
        let n = self.n_states();
        &self.transition[state as usize * n..(state as usize + 1) * n]
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

    /// The same of any states and others.
    pub(crate) fn pairs(&self, from: &[u32], to: &[u32]) -> Vec<T> {
        let mut pairs = self.products(from, to);
        for (row, &state) in pairs.chunks_exact_mut(to.len().max(1)).zip(from) {
            let log_sum = self.log_sums[state as usize];
            row.iter_mut().for_each(|logit| *logit = (*logit - log_sum).exp_of());
        }
        pairs
    }

    /// fromᵢ · toⱼ − log_sumᵢ of some states and others.
    pub(crate) fn log_pairs(&self, from: &[u32], to: &[u32]) -> Vec<f64> {
        let products = self.products(from, to);
        let rows = products.chunks_exact(to.len().max(1)).zip(from);
        rows.flat_map(|(row, &state)| {
            let log_sum = self.log_sums[state as usize].wide();
            row.iter().map(move |logit| logit.wide() - log_sum)
        })
        .collect()
    }

    /// fromᵢ · toⱼ of some states and others.
    fn products(&self, from: &[u32], to: &[u32]) -> Vec<T> {
        let gather = |rows: &[T], states: &[u32]| -> Vec<T> {
            let row = |&state: &u32| &rows[state as usize * self.dim..][..self.dim];
            states.iter().flat_map(row).copied().collect()
        };
        let (left, right) = (gather(&self.from, from), gather(&self.to, to));
        let mut products = vec![T::zero(); from.len() * to.len()];
        let left = MatRef::from_row_major_slice(&left, from.len(), self.dim);
        let right = MatRef::from_row_major_slice(&right, to.len(), self.dim);
        let out = MatMut::from_row_major_slice_mut(&mut products, from.len(), to.len());
        multiply(out, Accum::Replace, left, right.transpose(), Par::Seq);
        products
    }
}

fn rows<T>(values: &[T], dim: usize, range: Range<usize>) -> MatRef<'_, T> {
    let n_rows = range.len();
    MatRef::from_row_major_slice(&values[range.start * dim..range.end * dim], n_rows, dim)
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
