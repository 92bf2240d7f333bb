//! The probabilities of a model, or of the states that a mini-batch keeps.

use crate::space::kept_lists::KeptLists;
use crate::space::state_set::StateSet;
use crate::tables::factors::Factors;
use latens_math::Real;
use rayon::prelude::*;
use std::borrow::Cow;

/// The probabilities of the kept states, k per cluster and Z = m·k in all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables<T> {
    /// k: the number of states per cluster.
    pub(crate) k: usize,
    /// π: Z.
    pub(crate) start: Vec<T>,
    /// a: Z × Z, row-major; empty if only `factors` are stored.
    pub(crate) transition: Vec<T>,
    /// A copy of a in one k × k block per pair of clusters, which is faster to read; empty unless
    /// [`Tables::copy_blocks`] filled it in.
    pub(crate) blocks: Vec<T>,
    /// b: for every slot, the k states of its cluster, or the states of its list.
    pub(crate) emission: Vec<T>,
    /// The states of every slot, if the model has short state lists.
    pub(crate) lists: Option<KeptLists>,
    /// g: Z per tag; empty without tags.
    pub(crate) tags: Vec<T>,
    /// The factors of the transitions, if these come from networks.
    pub(crate) factors: Option<Factors<T>>,
}

impl<T: Real> Tables<T> {
    /// Z: the number of states.
    pub(crate) fn n_states(&self) -> usize {
        self.start.len()
    }

    /// Whether every state may emit every word.
    pub(crate) fn is_dense(&self) -> bool {
        self.k == self.n_states() && self.lists.is_none()
    }

    /// Copies a to blocks, if the model has clusters. They must be copied again when a changes.
    pub(crate) fn copy_blocks(&mut self) {
        let (k, n) = (self.k, self.n_states());
        if self.is_dense() || self.lists.is_some() || k == 0 {
            return;
        }
        self.blocks.resize(n * n, T::zero());
        let clusters = self.blocks.par_chunks_mut(k * n).zip(self.transition.par_chunks(k * n));
        clusters.for_each(|(blocks, rows)| {
            for (to, block) in blocks.chunks_exact_mut(k * k).enumerate() {
                for (out, row) in block.chunks_exact_mut(k).zip(rows.chunks_exact(n)) {
                    out.copy_from_slice(&row[to * k..(to + 1) * k]);
                }
            }
        });
    }

    /// The states of a group of words: of a cluster, or of a slot if the model has state lists.
    pub(crate) fn states(&self, group: usize) -> StateSet<'_> {
        match &self.lists {
            Some(lists) => StateSet::List(lists.of(group)),
            None => StateSet::Cluster(group),
        }
    }

    /// b of the states of a slot.
    pub(crate) fn emission_of(&self, slot: usize) -> &[T] {
        match &self.lists {
            Some(lists) => &self.emission[lists.range(slot)],
            None => &self.emission[slot * self.k..(slot + 1) * self.k],
        }
    }

    /// g of a tag, for some states.
    pub(crate) fn tag_of(&self, tag: u32, states: StateSet<'_>) -> Cow<'_, [T]> {
        let n = self.n_states();
        self.pick(&self.tags[tag as usize * n..(tag as usize + 1) * n], states)
    }

    /// Converts b from state lists to dense rows of all states.
    pub(crate) fn expand_lists(&mut self) {
        if let Some(lists) = self.lists.take() {
            self.emission = lists.scatter(&self.emission, self.n_states());
        }
    }

    /// Selects the entries of some states from the entries of all states.
    pub(crate) fn pick<'a>(&self, values: &'a [T], states: StateSet<'_>) -> Cow<'a, [T]> {
        match states {
            StateSet::Cluster(cluster) => {
                Cow::Borrowed(&values[cluster * self.k..(cluster + 1) * self.k])
            }
            StateSet::List(list) => list.iter().map(|&state| values[state as usize]).collect(),
        }
    }

    /// a for every pair of states of two lists, row-major.
    pub(crate) fn pairs(&self, from: &[u32], to: &[u32]) -> Vec<T> {
        if self.transition.is_empty() {
            let factors = self.factors.as_ref().expect("factors without a table");
            return factors.pairs(from, to);
        }
        let mut pairs = Vec::with_capacity(from.len() * to.len());
        for row in from.iter().map(|&state| self.row(state)) {
            pairs.extend(to.iter().map(|&state| row[state as usize]));
        }
        pairs
    }

    /// ln a for every pair of states of two sets, row-major.
    pub(crate) fn log_pairs(&self, from: StateSet<'_>, to: StateSet<'_>) -> Vec<f64> {
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
