//! Products with the transitions and the emissions of a fitted model, for inference over texts that are not known yet.

use crate::model::Hmm;
use crate::space::state_set::StateSet;
use latens_corpus::WordId;
use latens_math::Real;
use latens_math::linalg::{Accum, MatMut, MatRef, Par};
use latens_nn::multiply;
use rayon::prelude::*;
use std::ops::Range;

/// Rows of a transition block that one task multiplies.
const TILE: usize = 256;

/// The states that may emit a word, in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EmittingStates<'a> {
    /// All states of a range.
    Range(Range<usize>),
    /// The states of a list.
    List(&'a [u32]),
}

impl EmittingStates<'_> {
    /// Iterates over the states.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        let (range, list) = match self {
            EmittingStates::Range(range) => (range.clone(), &[][..]),
            EmittingStates::List(list) => (0..0, *list),
        };
        range.chain(list.iter().map(|&state| state as usize))
    }
}

impl Hmm {
    /// The states that may emit a word, and the probability with which each emits it; `None` if no state may.
    ///
    /// # Panics
    /// If the word is not in the vocabulary.
    pub fn emitting_states(&self, word: WordId) -> Option<(EmittingStates<'_>, &[f32])> {
        let (cluster, slot) = (self.space.cluster(word)?, self.space.slot(word)?);
        let states = match &self.space.lists {
            None => EmittingStates::Range(cluster * self.space.k..(cluster + 1) * self.space.k),
            Some(lists) => EmittingStates::List(lists.of(slot)),
        };
        Some((states, self.emission_of(slot)))
    }

    /// Σ_z f(z) a(z'|z) for every state z': the distribution of the next state, given that of a state.
    ///
    /// Skips states with f(z) = 0, so after a word of a clustered model it takes k·Z multiplications.
    ///
    /// # Panics
    /// If there is not one entry per state.
    pub fn next_states(&self, states: &[f64]) -> Vec<f64> {
        let (k, n) = (self.space.k, self.n_states());
        assert_eq!(states.len(), n, "one entry per state");
        let mut next = vec![0.0; n];
        let sparse: Vec<u32> = (0..n as u32).filter(|&z| states[z as usize] > 0.0).collect();
        for from in sparse.chunk_by(|&a, &b| a as usize / k == b as usize / k) {
            // The few states of a list are gathered; otherwise the block is used as it is.
            let cluster = from[0] as usize / k;
            let all: Vec<u32>;
            let (set, from) = if self.space.lists.is_some() && from.len() * 4 < k {
                (StateSet::List(from), from)
            } else {
                all = StateSet::Cluster(cluster).list(k).into_owned();
                (StateSet::Cluster(cluster), &all[..])
            };
            next.par_chunks_mut(k).enumerate().for_each(|(to, next)| {
                let pairs = self.blocks.pairs(&self.space, set, StateSet::Cluster(to));
                for (&state, row) in from.iter().zip(pairs.chunks_exact(k)) {
                    add_scaled(next, states[state as usize], row);
                }
            });
        }
        next
    }

    /// a(z'|z) for the states z of a set and all states z', row-major.
    #[cfg(any(feature = "cuda", test))]
    pub(crate) fn transition_rows(&self, from: StateSet<'_>, out: &mut [f32]) {
        let (k, n) = (self.space.k, self.n_states());
        for to in 0..self.space.n_clusters() {
            let block = self.blocks.pairs(&self.space, from, StateSet::Cluster(to));
            for (row, probabilities) in out.chunks_exact_mut(n).zip(block.chunks_exact(k)) {
                row[to * k..(to + 1) * k].copy_from_slice(probabilities);
            }
        }
    }

    /// Σ_z' a(z'|z) v(z') for every state z and each of several vectors v.
    ///
    /// `vectors` has one row per vector and one column per state z'. So has `out`, with columns z.
    ///
    /// # Panics
    /// If the lengths differ, or are not a multiple of the number of states.
    pub fn expectations<T: Real>(&self, vectors: &[T], out: &mut [T]) {
        let (k, m, n) = (self.space.k, self.space.n_clusters(), self.n_states());
        assert!(vectors.len() == out.len() && out.len().is_multiple_of(n), "rows of all states");
        let n_vectors = vectors.len() / n;
        let all = MatRef::from_row_major_slice(vectors, n_vectors, n);
        let tiles: Vec<Range<usize>> = (0..m)
            .flat_map(|from| (0..k).step_by(TILE).map(move |begin| (from, begin)))
            .map(|(from, begin)| from * k + begin..from * k + (begin + TILE).min(k))
            .collect();
        let results: Vec<Vec<T>> = tiles
            .par_iter()
            .map(|tile| {
                let mut sums = vec![T::zero(); n_vectors * tile.len()];
                let mut columns =
                    MatMut::from_row_major_slice_mut(&mut sums, n_vectors, tile.len());
                let (from, first) = (tile.start / k, tile.start % k);
                for to in 0..m {
                    let block = self.blocks.pairs(
                        &self.space,
                        StateSet::Cluster(from),
                        StateSet::Cluster(to),
                    );
                    let rows = T::of_floats(&block[first * k..(first + tile.len()) * k]);
                    let rows = MatRef::from_row_major_slice(&rows, tile.len(), k);
                    let part = all.subcols(to * k, k);
                    multiply(columns.as_mut(), Accum::Add, part, rows.transpose(), Par::Seq);
                }
                sums
            })
            .collect();
        for (tile, sums) in tiles.into_iter().zip(&results) {
            for (row, sums) in out.chunks_exact_mut(n).zip(sums.chunks_exact(tile.len())) {
                row[tile.clone()].copy_from_slice(sums);
            }
        }
    }

    /// max_z' a(z'|z) v(z') for every state z and each of several vectors v, in the layout of [`Hmm::expectations`].
    ///
    /// # Panics
    /// If the lengths differ, or are not a multiple of the number of states.
    pub fn maxima(&self, vectors: &[f64], out: &mut [f64]) {
        let (k, m, n) = (self.space.k, self.space.n_clusters(), self.n_states());
        assert!(vectors.len() == out.len() && out.len().is_multiple_of(n), "rows of all states");
        let n_vectors = vectors.len() / n;
        let columns: Vec<Vec<f64>> = (0..m)
            .into_par_iter()
            .map(|from| {
                let mut best = vec![0.0; k * n_vectors];
                for to in 0..m {
                    let block = self.blocks.pairs(
                        &self.space,
                        StateSet::Cluster(from),
                        StateSet::Cluster(to),
                    );
                    for (row, best) in block.chunks_exact(k).zip(best.chunks_exact_mut(n_vectors)) {
                        for (v, best) in vectors.chunks_exact(n).zip(best) {
                            *best = f64::max(*best, largest_product(row, &v[to * k..][..k]));
                        }
                    }
                }
                best
            })
            .collect();
        for (from, best) in columns.iter().enumerate() {
            for (i, best) in best.chunks_exact(n_vectors).enumerate() {
                for (row, &value) in out.chunks_exact_mut(n).zip(best) {
                    row[from * k + i] = value;
                }
            }
        }
    }
}

fn add_scaled(sums: &mut [f64], factor: f64, row: &[f32]) {
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || {
            for (sum, &a) in sums.iter_mut().zip(row) {
                *sum += factor * f64::from(a);
            }
        },
    );
}

fn largest_product(row: &[f32], values: &[f64]) -> f64 {
    const LANES: usize = 8;
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || {
            let mut lanes = [0f64; LANES];
            for (row, values) in row.chunks(LANES).zip(values.chunks(LANES)) {
                for ((lane, &a), &v) in lanes.iter_mut().zip(row).zip(values) {
                    let product = f64::from(a) * v;
                    *lane = if product > *lane { product } else { *lane };
                }
            }
            lanes.into_iter().fold(0.0, f64::max)
        },
    )
}
