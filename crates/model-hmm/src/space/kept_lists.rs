//! Lists of states, one for each word, where words share no clusters.

use crate::space::state_space::Lists;
use crate::tables::probability_tables::Kept;
use latens_math::Real;
use std::ops::Range;

/// For each slot the states that may emit it, as far as they take part: their numbers among those that do,
/// ascending. Numbers that belong to them lie in this order, slot after slot.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeptLists {
    /// Where each list begins, and where the last one ends.
    begins: Vec<usize>,
    states: Vec<u32>,
}

impl KeptLists {
    /// What is left of lists of the states below `n_states`.
    pub(crate) fn new(lists: &Lists, n_states: usize, kept: &Kept) -> KeptLists {
        if kept.states.len() == n_states {
            let begins = (0..=lists.len()).map(|slot| slot * lists.n).collect();
            return KeptLists { begins, states: lists.states.clone() };
        }
        let mut number = vec![None; n_states];
        for (i, &state) in kept.states.iter().enumerate() {
            number[state as usize] = Some(i as u32);
        }
        let (mut begins, mut states) = (vec![0], Vec::with_capacity(lists.states.len()));
        for slot in 0..lists.len() {
            states.extend(lists.of(slot).iter().filter_map(|&state| number[state as usize]));
            begins.push(states.len());
        }
        KeptLists { begins, states }
    }

    /// The states of a slot.
    pub(crate) fn of(&self, slot: usize) -> &[u32] {
        &self.states[self.range(slot)]
    }

    /// Where the numbers of a slot lie.
    pub(crate) fn range(&self, slot: usize) -> Range<usize> {
        self.begins[slot]..self.begins[slot + 1]
    }

    pub(crate) fn n_slots(&self) -> usize {
        self.begins.len() - 1
    }

    /// How many numbers there are in all.
    pub(crate) fn n_values(&self) -> usize {
        self.states.len()
    }

    /// Cuts the numbers of all slots into those of at most `n` slots each.
    pub(crate) fn cut<'a, T>(
        &self,
        n: usize,
        values: &'a mut [T],
    ) -> Vec<(Range<usize>, &'a mut [T])> {
        let mut rest = values;
        let firsts = (0..self.n_slots()).step_by(n.max(1));
        let parts = firsts.map(|first| {
            let slots = first..(first + n).min(self.n_slots());
            let len = self.begins[slots.end] - self.begins[slots.start];
            (slots, rest.split_off_mut(..len).expect("as many numbers as the lists have"))
        });
        parts.collect()
    }

    /// The slots of one part of [`KeptLists::cut`], each with its states and numbers.
    pub(crate) fn each<'a, T>(
        &'a self,
        (slots, values): (Range<usize>, &'a mut [T]),
    ) -> impl Iterator<Item = (usize, &'a [u32], &'a mut [T])> {
        let mut rest = values;
        slots.map(move |slot| {
            let states = self.of(slot);
            let row = rest.split_off_mut(..states.len()).expect("a number for each state");
            (slot, states, row)
        })
    }

    /// A row of `n` numbers for each slot ─▶ those of its list.
    pub(crate) fn gather<T: Copy>(&self, rows: &[T], n: usize) -> Vec<T> {
        let entry = |slot: usize, &state: &u32| rows[slot * n + state as usize];
        let slots = 0..self.n_slots();
        slots.flat_map(|slot| self.of(slot).iter().map(move |state| entry(slot, state))).collect()
    }

    /// The other way round, with zeros for what is in no list.
    pub(crate) fn scatter<T: Real>(&self, values: &[T], n: usize) -> Vec<T> {
        let mut rows = vec![T::zero(); self.n_slots() * n];
        for (slot, row) in rows.chunks_exact_mut(n.max(1)).enumerate() {
            let values = &values[self.range(slot)];
            self.of(slot).iter().zip(values).for_each(|(&state, &b)| row[state as usize] = b);
        }
        rows
    }
}

/// Expected transitions between states of lists, divided by their probabilities: Σ_t α_t/κ_t ⊗ v_{t+1}, not yet
/// added up. A row of the sum is added up where it is needed, so that there is never a whole table of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListedRatios<T> {
    /// Where the entries of each state begin, and where those of the last one end.
    begins: Vec<usize>,
    /// α_t/κ_t of the state, and the token t + 1, in the order of tokens.
    entries: Vec<(T, u32)>,
    /// The slot of each token, and where its part of v begins.
    slots: Vec<u32>,
    places: Vec<usize>,
    weighted: Vec<T>,
}

impl<T: Real> ListedRatios<T> {
    /// Overwrites it with the transitions from some tokens to the next ones. Token `at` has the numbers
    /// `places[at]` to `places[at + 1]` of `alpha` and `weighted`; the latter changes places with an array of
    /// before.
    pub(crate) fn fill(
        &mut self,
        lists: &KeptLists,
        n_states: usize,
        (slots, places): (&[u32], &[usize]),
        (alpha, weighted): (&[T], &mut Vec<T>),
        tokens: impl Iterator<Item = usize> + Clone,
    ) {
        self.slots.clear();
        self.slots.extend_from_slice(slots);
        self.places.clear();
        self.places.extend_from_slice(places);
        std::mem::swap(&mut self.weighted, weighted);
        // What is zero adds nothing, and many states are.
        let from = |at: usize| {
            let alpha = &alpha[places[at]..places[at + 1]];
            let states = lists.of(slots[at] as usize).iter().zip(alpha);
            states.filter(|(_, alpha)| **alpha != T::zero())
        };
        self.begins.clear();
        self.begins.resize(n_states + 1, 0);
        for at in tokens.clone() {
            from(at).for_each(|(&state, _)| self.begins[state as usize + 1] += 1);
        }
        for state in 0..n_states {
            self.begins[state + 1] += self.begins[state];
        }
        let mut next = self.begins.clone();
        self.entries.clear();
        self.entries.resize(self.begins[n_states], (T::zero(), 0));
        for at in tokens {
            for (&state, &alpha) in from(at) {
                self.entries[next[state as usize]] = (alpha, at as u32 + 1);
                next[state as usize] += 1;
            }
        }
    }

    /// Whether there are transitions from a state.
    pub(crate) fn has_row(&self, state: usize) -> bool {
        self.begins[state] < self.begins[state + 1]
    }

    /// Adds the transitions from a state to `row`, which has a number for each state.
    pub(crate) fn add_row(&self, lists: &KeptLists, state: usize, row: &mut [T]) {
        for &(alpha, to) in &self.entries[self.begins[state]..self.begins[state + 1]] {
            let to = to as usize;
            let weighted = &self.weighted[self.places[to]..self.places[to + 1]];
            let states = lists.of(self.slots[to] as usize);
            for (&state, &weighted) in states.iter().zip(weighted) {
                row[state as usize] += alpha * weighted;
            }
        }
    }
}
