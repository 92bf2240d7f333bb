//! Steps over lists of states, where each word has one of its own.

use crate::cuda::plan::batch_plan::push;
use crate::cuda::plan::device_plan::Planned;
use crate::cuda::tables::Tables;
use crate::space::state_space::Lists;
use crate::tables::probability_tables::Kept;
use latens_cuda::{CudaError, Device, Listed, StateTokens};
use std::ops::Range;

/// Where the numbers of lists lie in a plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListedPlan {
    /// The most states of a list.
    pub(crate) k: usize,
    /// How many states take part in all.
    n: usize,
    /// How many words there are.
    pub(crate) n_groups: usize,
    pub(crate) states: Range<usize>,
    pub(crate) begins: Range<usize>,
    pub(crate) entries: Range<usize>,
    pub(crate) ends: Range<usize>,
}

impl ListedPlan {
    /// The lists of the words with these slots, as far as states take part; and which list is each token's.
    pub(crate) fn new(
        ints: &mut Vec<u32>,
        lists: &Lists,
        kept: &Kept,
        slots: &[u32],
    ) -> (ListedPlan, Vec<u32>) {
        let mut group_of = vec![u32::MAX; lists.len()];
        let mut of_groups = vec![];
        let group = |&slot: &u32| {
            let group = &mut group_of[slot as usize];
            if *group == u32::MAX {
                *group = of_groups.len() as u32;
                of_groups.push(slot as usize);
            }
            *group
        };
        let groups: Vec<u32> = slots.iter().map(group).collect();

        let mut number = vec![u32::MAX; kept.states.last().map_or(0, |&last| last as usize + 1)];
        for (i, &state) in kept.states.iter().enumerate() {
            number[state as usize] = i as u32;
        }
        let of_slot = |slot: usize| {
            let numbers = lists.of(slot).iter().filter_map(|&state| number.get(state as usize));
            numbers.copied().filter(|&number| number != u32::MAX).collect::<Vec<u32>>()
        };
        let kept_lists: Vec<Vec<u32>> = of_groups.into_iter().map(of_slot).collect();
        let k = kept_lists.iter().map(Vec::len).max().unwrap_or(0).max(1);
        let states = push(ints, &vec![u32::MAX; kept_lists.len() * k]);
        for (list, row) in kept_lists.iter().zip(ints[states.clone()].chunks_exact_mut(k)) {
            row[..list.len()].copy_from_slice(list);
        }
        let (n, n_groups) = (kept.states.len(), kept_lists.len());
        (ListedPlan { k, n, n_groups, states, ..ListedPlan::default() }, groups)
    }

    /// Adds the tokens of each state, of sentences that begin at `offsets`.
    pub(crate) fn add_state_tokens(
        &mut self,
        ints: &mut Vec<u32>,
        offsets: &[u32],
        groups: &[u32],
    ) {
        let mut ends = vec![0; groups.len()];
        for sentence in offsets.windows(2).filter(|ends| ends[0] < ends[1]) {
            ends[sentence[0] as usize] |= StateTokens::FIRST;
            ends[sentence[1] as usize - 1] |= StateTokens::LAST;
        }
        let (states, k) = (&ints[self.states.clone()], self.k);
        let of_token = |(t, &group): (usize, &u32)| {
            let places = states[group as usize * k..][..k].iter().enumerate();
            let places = places.filter(|(_, state)| **state != u32::MAX);
            places.map(move |(j, &state)| (state as usize, (t * k + j) as u32))
        };
        let all = || groups.iter().enumerate().flat_map(of_token);
        let mut begins = vec![0u32; self.n + 1];
        all().for_each(|(state, _)| begins[state + 1] += 1);
        for state in 0..self.n {
            begins[state + 1] += begins[state];
        }
        let (mut next, mut entries) = (begins.clone(), vec![0; begins[self.n] as usize]);
        for (state, entry) in all() {
            entries[next[state] as usize] = entry;
            next[state] += 1;
        }
        self.begins = push(ints, &begins);
        self.entries = push(ints, &entries);
        self.ends = push(ints, &ends);
    }
}

impl Tables {
    /// b and the first probabilities of the states of each token.
    pub(crate) fn place_listed(
        &mut self,
        device: &Device,
        planned: &Planned<'_>,
        listed: &Listed<'_>,
        n: usize,
    ) -> Result<(), CudaError> {
        device.reserve(&mut self.listed_start, listed.states.len().next_power_of_two())?;
        device.gather_listed(&mut self.listed_start, &self.start, listed)?;
        device.place_listed(&mut self.local, &self.emission, &planned.sequences(), listed, n)
    }

    /// The blocks of a plan, as far as they lead from the states `rows`, of which there are logits and their sums.
    pub(crate) fn gather_listed(
        &mut self,
        device: &Device,
        planned: &Planned<'_>,
        listed: &Listed<'_>,
        rows: Range<usize>,
        n: usize,
    ) -> Result<(), CudaError> {
        let blocks = planned.blocks(0..planned.plan.n_blocks());
        let (logits, sums) = ((&self.logits, rows), &self.log_sums);
        device.gather_listed_blocks(&mut self.blocks, logits, sums, &blocks, listed, n)
    }

    /// Probabilities ─▶ expected counts. Transitions stay as they are: their derivatives are made token by token.
    pub(crate) fn expect_listed(
        &mut self,
        device: &Device,
        planned: &Planned<'_>,
        (listed, tokens): (&Listed<'_>, &StateTokens<'_>),
        n: usize,
    ) -> Result<(), CudaError> {
        self.place_listed(device, planned, listed, n)?;
        let out = (&mut self.alpha, &mut self.nodes, &mut self.weighted);
        let probabilities = (&self.local, &self.listed_start, &self.blocks);
        let (sequences, k) = (planned.sequences(), listed.k);
        device.both_passes(out, &mut self.log_probs, probabilities, &sequences, k)?;
        let out = (&mut self.visits, &mut self.start_counts, &mut self.left);
        device.sum_listed(out, &self.nodes, tokens, k)?;
        // The sums of words' tokens, in the place of what is no longer needed.
        device.sum_groups(&mut self.listed_start, &self.nodes, &planned.visits(), k)?;
        device.clear(&mut self.emitted)?;
        device.scatter_listed(&mut self.emitted, &self.listed_start, listed, n)
    }
}
