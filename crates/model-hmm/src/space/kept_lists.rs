//! The state lists of a mini-batch.

use crate::space::kept_states::KeptStates;
use crate::space::state_lists::StateLists;
use crate::space::state_space::StateSpace;
use latens_math::Real;
use std::ops::Range;

/// For every slot, the kept states that may emit it: their indices among the kept states, in ascending order.
///
/// Values that belong to these states are stored in the same order, slot after slot.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeptLists {
    /// The start of each list, and the end of the last one.
    begins: Vec<usize>,
    states: Vec<u32>,
}

impl KeptLists {
    /// The kept part of short state lists; `None` if the model has no lists or long ones.
    pub(crate) fn short(space: &StateSpace, kept: &KeptStates) -> Option<KeptLists> {
        Some(KeptLists::new(space.short_lists()?, space.n_states(), kept))
    }

    /// The whole state lists, short or long; `None` if the model has none.
    pub(crate) fn all(space: &StateSpace) -> Option<KeptLists> {
        let lists = space.lists.as_ref()?;
        Some(KeptLists::new(lists, space.n_states(), &KeptStates::all(space)))
    }

    /// The kept part of lists over `n_states` states.
    pub(crate) fn new(lists: &StateLists, n_states: usize, kept: &KeptStates) -> KeptLists {
        if kept.states.len() == n_states {
            let begins = (0..=lists.len()).map(|slot| slot * lists.n).collect();
            return KeptLists { begins, states: lists.states.clone() };
        }
        let mut idx_of = vec![None; n_states];
        for (i, &state) in kept.states.iter().enumerate() {
            idx_of[state as usize] = Some(i as u32);
        }
        let (mut begins, mut states) = (vec![0], Vec::with_capacity(lists.states.len()));
        for slot in 0..lists.len() {
            states.extend(lists.of(slot).iter().filter_map(|&state| idx_of[state as usize]));
            begins.push(states.len());
        }
        KeptLists { begins, states }
    }

    /// The states of a slot.
    pub(crate) fn of(&self, slot: usize) -> &[u32] {
        &self.states[self.range(slot)]
    }

    /// The range of the values of a slot.
    pub(crate) fn range(&self, slot: usize) -> Range<usize> {
        self.begins[slot]..self.begins[slot + 1]
    }

    /// The number of lists.
    pub(crate) fn n_slots(&self) -> usize {
        self.begins.len() - 1
    }

    /// The total number of values.
    pub(crate) fn n_values(&self) -> usize {
        self.states.len()
    }

    /// Splits the values of all slots into chunks of at most `n` slots.
    pub(crate) fn chunks<'a, T>(
        &self,
        n: usize,
        values: &'a mut [T],
    ) -> Vec<(Range<usize>, &'a mut [T])> {
        let mut rest = values;
        let firsts = (0..self.n_slots()).step_by(n.max(1));
        let parts = firsts.map(|first| {
            let slots = first..(first + n).min(self.n_slots());
            let len = self.begins[slots.end] - self.begins[slots.start];
            (slots, rest.split_off_mut(..len).expect("one value per list entry"))
        });
        parts.collect()
    }

    /// Iterates over one chunk of [`KeptLists::chunks`]: slots with their states and values.
    pub(crate) fn each<'a, T>(
        &'a self,
        (slots, values): (Range<usize>, &'a mut [T]),
    ) -> impl Iterator<Item = (usize, &'a [u32], &'a mut [T])> {
        let mut rest = values;
        slots.map(move |slot| {
            let states = self.of(slot);
            let row = rest.split_off_mut(..states.len()).expect("one value per state");
            (slot, states, row)
        })
    }

    /// Converts dense rows of `n` entries per slot to the values of the lists.
    pub(crate) fn gather<T: Copy>(&self, rows: &[T], n: usize) -> Vec<T> {
        let entry = |slot: usize, &state: &u32| rows[slot * n + state as usize];
        let slots = 0..self.n_slots();
        slots.flat_map(|slot| self.of(slot).iter().map(move |state| entry(slot, state))).collect()
    }

    /// The inverse of [`KeptLists::gather`], with zeros for states that are not in a list.
    pub(crate) fn scatter<T: Real>(&self, values: &[T], n: usize) -> Vec<T> {
        let mut rows = vec![T::zero(); self.n_slots() * n];
        for (slot, row) in rows.chunks_exact_mut(n.max(1)).enumerate() {
            let values = &values[self.range(slot)];
            self.of(slot).iter().zip(values).for_each(|(&state, &b)| row[state as usize] = b);
        }
        rows
    }
}
