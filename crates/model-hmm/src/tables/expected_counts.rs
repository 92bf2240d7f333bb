//! The expected counts of a batch.

use crate::tables::listed_ratios::ListedRatios;

/// Expected counts of starts, transitions, emissions and tags under the posterior of the states of a batch.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExpectedCounts<T> {
    /// Expected starts in each state: Z.
    pub(crate) start: Vec<T>,
    /// Expected transitions out of each state, the row sums of the transitions: Z.
    pub(crate) departures: Vec<T>,
    /// Expected transitions of the used blocks, divided by their probabilities and sorted by clusters.
    pub(crate) ratios: Vec<Block<T>>,
    /// The same for a model with state lists.
    pub(crate) listed: ListedRatios<T>,
    /// Expected transitions, not divided, of sentences whose scaled recursion underflowed.
    pub(crate) counts: Vec<Block<T>>,
    /// The emitted slots, in ascending order.
    pub(crate) slots: Vec<u32>,
    /// Expected emissions of each of these slots by each state that may emit it.
    pub(crate) emission: Vec<T>,
    /// Expected emissions of each tag by each state: Z per tag.
    pub(crate) tags: Vec<T>,
}

/// A k × k matrix for a pair of clusters, row-major.
#[derive(Clone, Debug)]
pub(crate) struct Block<T> {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) values: Vec<T>,
}

/// The blocks that start in a cluster; `blocks` are sorted.
pub(crate) fn blocks_from<T>(blocks: &[Block<T>], from: usize) -> impl Iterator<Item = &Block<T>> {
    let begin = blocks.partition_point(|block| (block.from as usize) < from);
    blocks[begin..].iter().take_while(move |block| block.from as usize == from)
}
