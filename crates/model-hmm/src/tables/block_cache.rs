//! The transitions of a fitted model in blocks, stored or computed on demand.

use crate::space::state_set::StateSet;
use crate::space::state_space::StateSpace;
use crate::tables::factors::Factors;
use crate::tables::once_cache::OnceCache;
use latens_store::FlatArray;
use std::borrow::Cow;

/// The largest number of cached probabilities: 2 GiB.
const MAX_CACHED: usize = 1 << 29;

/// a(z'|z) in one k × k block per pair of clusters, row-major.
#[derive(Debug)]
pub(crate) enum TransitionBlocks {
    /// All blocks, ordered by the first cluster, then by the second.
    Stored(FlatArray<f32>),
    /// Factors, and the blocks that have been computed from them so far. A model with 2¹⁶ states can score a sentence
    /// without 16 GiB of transitions.
    Computed { factors: Factors<f32>, blocks: OnceCache },
}

impl TransitionBlocks {
    /// Stores a Z × Z table as blocks.
    pub(crate) fn from_rows(rows: &[f32], space: &StateSpace) -> TransitionBlocks {
        let (k, m, n) = (space.k, space.n_clusters(), space.n_states());
        let mut blocks = Vec::with_capacity(n * n);
        for from in 0..m {
            for to in 0..m {
                for i in from * k..(from + 1) * k {
                    blocks.extend_from_slice(&rows[i * n + to * k..i * n + (to + 1) * k]);
                }
            }
        }
        TransitionBlocks::Stored(blocks.into())
    }

    /// Normalizes the factors, with Z²·dim multiplications, and starts with an empty cache.
    pub(crate) fn from_factors(mut factors: Factors<f32>, space: &StateSpace) -> TransitionBlocks {
        factors.normalize();
        // With more clusters the blocks are too small to be worth caching.
        let n_blocks = Some(space.n_clusters().pow(2)).filter(|&n| n <= 1 << 24).unwrap_or(0);
        TransitionBlocks::Computed { factors, blocks: OnceCache::new(n_blocks, MAX_CACHED) }
    }

    /// a(z'|z) for all pairs of states of two sets, row-major.
    pub(crate) fn pairs(
        &self,
        space: &StateSpace,
        from: StateSet<'_>,
        to: StateSet<'_>,
    ) -> Cow<'_, [f32]> {
        match (from, to) {
            (StateSet::Cluster(from), StateSet::Cluster(to)) => self.block(space, from, to),
            _ => Cow::Owned(self.gather(space, &from.list(space.k), &to.list(space.k))),
        }
    }

    fn block(&self, space: &StateSpace, from: usize, to: usize) -> Cow<'_, [f32]> {
        let (k, at) = (space.k, from * space.n_clusters() + to);
        match self {
            TransitionBlocks::Stored(blocks) => {
                Cow::Borrowed(&blocks[at * k * k..(at + 1) * k * k])
            }
            TransitionBlocks::Computed { factors, blocks } => {
                let states = |cluster: usize| cluster * k..(cluster + 1) * k;
                blocks.get(at, k * k, || factors.block(states(from), states(to)))
            }
        }
    }

    fn gather(&self, space: &StateSpace, from: &[u32], to: &[u32]) -> Vec<f32> {
        match self {
            TransitionBlocks::Stored(_) => {
                let probability = |i: u32, j: u32| {
                    let k = space.k;
                    let (i, j) = (i as usize, j as usize);
                    let TransitionBlocks::Stored(blocks) = self else {
                        unreachable!("matched above")
                    };
                    blocks[((i / k * space.n_clusters() + j / k) * k + i % k) * k + j % k]
                };
                let mut pairs = Vec::with_capacity(from.len() * to.len());
                for &i in from {
                    pairs.extend(to.iter().map(|&j| probability(i, j)));
                }
                pairs
            }
            TransitionBlocks::Computed { factors, .. } => factors.pairs(from, to),
        }
    }

    /// ln of [`TransitionBlocks::pairs`], without underflow.
    pub(crate) fn log_pairs(
        &self,
        space: &StateSpace,
        from: StateSet<'_>,
        to: StateSet<'_>,
    ) -> Vec<f64> {
        match self {
            TransitionBlocks::Stored(_) => {
                self.pairs(space, from, to).iter().map(|&p| f64::from(p).ln()).collect()
            }
            TransitionBlocks::Computed { factors, .. } => {
                factors.log_pairs(&from.list(space.k), &to.list(space.k))
            }
        }
    }
}
