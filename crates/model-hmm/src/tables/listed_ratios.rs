//! Expected transitions between states of lists.

use crate::space::kept_lists::KeptLists;
use latens_math::Real;

/// Expected transitions between states of lists, divided by their probabilities: the terms of
/// Σ_t α_t/κ_t ⊗ v_{t+1}.
///
/// The terms are summed one row at a time where a row is needed, so that the Z × Z sum is never stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListedRatios<T> {
    /// The start of the entries of each state, and the end of the last ones.
    begins: Vec<usize>,
    /// α_t/κ_t of the state and the token t + 1, ordered by token.
    entries: Vec<(T, u32)>,
    /// The slot of each token.
    slots: Vec<u32>,
    /// The start of the values of each token in `weighted`, and the end of the last ones.
    value_starts: Vec<usize>,
    /// v of each token.
    weighted: Vec<T>,
}

impl<T: Real> ListedRatios<T> {
    /// Stores the transitions from `tokens` to the tokens after them. Token `at` owns the values
    /// `value_starts[at]..value_starts[at + 1]` of `alpha` and `weighted`; `weighted` is swapped with an old buffer.
    pub(crate) fn fill(
        &mut self,
        lists: &KeptLists,
        n_states: usize,
        (slots, value_starts): (&[u32], &[usize]),
        (alpha, weighted): (&[T], &mut Vec<T>),
        tokens: impl Iterator<Item = usize> + Clone,
    ) {
        self.slots.clear();
        self.slots.extend_from_slice(slots);
        self.value_starts.clear();
        self.value_starts.extend_from_slice(value_starts);
        std::mem::swap(&mut self.weighted, weighted);
        // Zeros contribute nothing, and there are many of them.
        let from = |at: usize| {
            let alpha = &alpha[value_starts[at]..value_starts[at + 1]];
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

    /// Whether there are any transitions from a state.
    pub(crate) fn has_row(&self, state: usize) -> bool {
        self.begins[state] < self.begins[state + 1]
    }

    /// Adds the transitions from `state` to `row`, which has one entry per state.
    pub(crate) fn add_row(&self, lists: &KeptLists, state: usize, row: &mut [T]) {
        for &(alpha, to) in &self.entries[self.begins[state]..self.begins[state + 1]] {
            let to = to as usize;
            let weighted = &self.weighted[self.value_starts[to]..self.value_starts[to + 1]];
            let states = lists.of(self.slots[to] as usize);
            for (&state, &weighted) in states.iter().zip(weighted) {
                row[state as usize] += alpha * weighted;
            }
        }
    }
}
