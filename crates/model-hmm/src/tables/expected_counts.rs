//! The expected counts of a batch.

use crate::tables::emitted::EmittedSlots;
use crate::tables::listed_ratios::ListedRatios;
use latens_math::Real;

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

impl<T: Real> ExpectedCounts<T> {
    /// Sets the counts of starts, departures and tags to zero, and removes those of emissions.
    pub(crate) fn clear_nodes(&mut self, n_states: usize, n_tags: usize) {
        let [starts, departures, tags] = [&mut self.start, &mut self.departures, &mut self.tags];
        for (sums, n) in [(starts, n_states), (departures, n_states), (tags, n_tags)] {
            sums.clear();
            sums.resize(n, T::zero());
        }
        self.slots.clear();
        self.emission.clear();
    }

    /// Overwrites the counts with the sums of those of the parts of a batch, in a dense model with k states.
    pub(crate) fn merge(&mut self, parts: Vec<ExpectedCounts<T>>, k: usize) {
        let slots = || parts.iter().flat_map(|part| part.slots.iter().copied());
        let mut emitted = EmittedSlots::default();
        emitted.find(slots(), slots().max().map_or(0, |last| last as usize + 1));
        self.emission.clear();
        self.emission.resize(emitted.slots.len() * k, T::zero());
        for part in &parts {
            for (&slot, counts) in part.slots.iter().zip(part.emission.chunks_exact(k)) {
                add(&mut self.emission[emitted.place(slot) as usize * k..][..k], counts);
            }
        }
        self.slots = emitted.slots;
        let mut sums = [vec![], vec![], vec![]];
        let mut blocks: [Option<Block<T>>; 2] = [None, None];
        for part in parts {
            for (sum, counts) in sums.iter_mut().zip([part.start, part.departures, part.tags]) {
                match sum.is_empty() {
                    true => *sum = counts,
                    false => add(sum, &counts),
                }
            }
            for (sum, counts) in blocks.iter_mut().zip([part.ratios, part.counts]) {
                for block in counts {
                    match sum {
                        None => *sum = Some(block),
                        Some(sum) => add(&mut sum.values, &block.values),
                    }
                }
            }
        }
        [self.start, self.departures, self.tags] = sums;
        [self.ratios, self.counts] = blocks.map(|block| block.into_iter().collect());
    }
}

fn add<T: Real>(sums: &mut [T], values: &[T]) {
    sums.iter_mut().zip(values).for_each(|(sum, &value)| *sum += value);
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
