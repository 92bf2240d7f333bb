//! The transitions of a fitted model, block by block.

use crate::space::state_space::Support;
use crate::tables::probability_tables::Factors;
use latens_store::FlatArray;
use std::borrow::Cow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many numbers of computed blocks are kept, at most: 2 GiB.
const MAX_KEPT: usize = 1 << 29;

/// a(z'|z). The block of two clusters is k × k, row by row.
#[derive(Debug)]
pub(crate) enum Transitions {
    /// All blocks, those of the first cluster first.
    Stored(FlatArray<f32>),
    /// Products, of which blocks are computed when they are first needed. So a model of 2¹⁶ states needs
    /// no 16 GiB to score a sentence.
    Computed { factors: Factors<f32>, blocks: Vec<OnceLock<Box<[f32]>>>, n_kept: AtomicUsize },
}

/// Some states: all of a cluster, or those of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) enum States<'a> {
    Cluster(usize),
    List(&'a [u32]),
}

impl Transitions {
    /// Blocks of rows of Z numbers each.
    pub(crate) fn of_rows(rows: &[f32], support: &Support) -> Transitions {
        let (k, m, n) = (support.k, support.n_clusters(), support.n_states());
        let mut blocks = Vec::with_capacity(n * n);
        for from in 0..m {
            for to in 0..m {
                for i in from * k..(from + 1) * k {
                    blocks.extend_from_slice(&rows[i * n + to * k..i * n + (to + 1) * k]);
                }
            }
        }
        Transitions::Stored(blocks.into())
    }

    /// Products of factors, whose sums are computed here: Z²·dim multiplications.
    pub(crate) fn of_factors(mut factors: Factors<f32>, support: &Support) -> Transitions {
        factors.sum_up();
        // So many blocks are so small that it does not pay to keep them.
        let n_blocks = Some(support.n_clusters().pow(2)).filter(|&n| n <= 1 << 24).unwrap_or(0);
        let blocks = std::iter::repeat_with(OnceLock::new).take(n_blocks).collect();
        Transitions::Computed { factors, blocks, n_kept: AtomicUsize::new(0) }
    }

    /// The probabilities of going from some states to others, row by row.
    pub(crate) fn pairs(
        &self,
        support: &Support,
        from: States<'_>,
        to: States<'_>,
    ) -> Cow<'_, [f32]> {
        match (from, to) {
            (States::Cluster(from), States::Cluster(to)) => self.block(support, from, to),
            _ => Cow::Owned(self.gather(support, &from.list(support.k), &to.list(support.k))),
        }
    }

    fn block(&self, support: &Support, from: usize, to: usize) -> Cow<'_, [f32]> {
        let (k, at) = (support.k, from * support.n_clusters() + to);
        match self {
            Transitions::Stored(blocks) => Cow::Borrowed(&blocks[at * k * k..(at + 1) * k * k]),
            Transitions::Computed { factors, blocks, n_kept } => {
                if let Some(block) = blocks.get(at).and_then(OnceLock::get) {
                    return Cow::Borrowed(block);
                }
                let states = |cluster: usize| cluster * k..(cluster + 1) * k;
                let block = factors.block(states(from), states(to));
                let Some(place) = blocks.get(at) else { return Cow::Owned(block) };
                let len = block.len();
                // A single block is kept however large it is: nobody could wait for it twice.
                let is_full = n_kept.fetch_add(len, Ordering::Relaxed) + len > MAX_KEPT;
                if is_full && blocks.len() > 1 {
                    n_kept.fetch_sub(len, Ordering::Relaxed);
                    return Cow::Owned(block);
                }
                if place.set(block.into()).is_err() {
                    // Another thread was faster.
                    n_kept.fetch_sub(len, Ordering::Relaxed);
                }
                Cow::Borrowed(place.get().expect("it was set"))
            }
        }
    }

    fn gather(&self, support: &Support, from: &[u32], to: &[u32]) -> Vec<f32> {
        match self {
            Transitions::Stored(_) => {
                let probability = |i: u32, j: u32| {
                    let k = support.k;
                    let (i, j) = (i as usize, j as usize);
                    let Transitions::Stored(blocks) = self else { unreachable!("it is stored") };
                    blocks[((i / k * support.n_clusters() + j / k) * k + i % k) * k + j % k]
                };
                from.iter().flat_map(|&i| to.iter().map(move |&j| probability(i, j))).collect()
            }
            Transitions::Computed { factors, .. } => factors.pairs(from, to),
        }
    }

    /// ln of [`Transitions::pairs`], of what is too small for a probability too.
    pub(crate) fn log_pairs(
        &self,
        support: &Support,
        from: States<'_>,
        to: States<'_>,
    ) -> Vec<f64> {
        match self {
            Transitions::Stored(_) => {
                self.pairs(support, from, to).iter().map(|&p| f64::from(p).ln()).collect()
            }
            Transitions::Computed { factors, .. } => {
                factors.log_pairs(&from.list(support.k), &to.list(support.k))
            }
        }
    }
}

impl<'a> States<'a> {
    /// How many there are.
    pub(crate) fn len(self, k: usize) -> usize {
        match self {
            States::Cluster(_) => k,
            States::List(list) => list.len(),
        }
    }

    /// The numbers of the states.
    pub(crate) fn list(self, k: usize) -> Cow<'a, [u32]> {
        match self {
            States::Cluster(cluster) => {
                Cow::Owned(((cluster * k) as u32..((cluster + 1) * k) as u32).collect())
            }
            States::List(list) => Cow::Borrowed(list),
        }
    }
}
