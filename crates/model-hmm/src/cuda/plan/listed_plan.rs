//! The state lists of a mini-batch on the device.

use crate::space::kept_states::KeptStates;
use crate::space::state_lists::StateLists;
use latens_cuda::StateTokens;
use std::ops::Range;

/// The ranges of a batch plan that hold state lists.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListedPlan {
    /// The length of the longest list.
    pub(crate) k: usize,
    /// The number of kept states.
    n: usize,
    /// The number of distinct words.
    pub(crate) n_groups: usize,
    pub(crate) states: Range<usize>,
    pub(crate) begins: Range<usize>,
    pub(crate) entries: Range<usize>,
    pub(crate) ends: Range<usize>,
}

impl ListedPlan {
    /// Adds the kept states of the lists of some slots. Returns also the list of each token.
    pub(crate) fn new(
        ints: &mut Vec<u32>,
        lists: &StateLists,
        kept: &KeptStates,
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

    /// Adds the tokens of each state, for sentences that start at `offsets`.
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

/// Appends values to an array. Returns their range.
pub(crate) fn push(ints: &mut Vec<u32>, values: &[u32]) -> Range<usize> {
    let begin = ints.len();
    ints.extend_from_slice(values);
    begin..ints.len()
}
