//! States of the words of a text: filtered (from the words so far) and smoothed (from all of them), with the
//! gains that filter and smoother tend to.

use crate::model::{Lds, Steps};
use latens_corpus::WordId;
use latens_math::linalg::Mat;
use latens_math::{BlockRef, Real};

impl Lds {
    /// x_t = H x_{t−1} + B u_t for each word, row after row, from the state x_0 or 0. A word that was never
    /// seen says nothing: the state goes on by A.
    pub fn filter(&self, words: &[WordId], start: Option<&[f32]>) -> Vec<f32> {
        let Steps { closed, open, .. } = &self.steps;
        let step = |word: &WordId| if self.counts[word.index()] > 0 { closed } else { open };
        let steps = words.iter().map(|word| (&step(word)[..], self.inputs.row(word.index())));
        match start {
            Some(start) => filter(steps, start),
            None => filter(steps, &vec![0.0; self.dim()]),
        }
    }

    /// xT_t = J xT_{t+1} + P x_t, in place of the filtered states, row after row.
    pub fn smooth(&self, states: &mut [f32]) {
        smooth(&self.steps.next, &self.steps.own, self.dim(), states);
    }
}

/// x_t = step_t x_{t−1} + input_t, row after row; steps are matrices, row after row.
pub(crate) fn filter<'a, T: Real>(
    steps: impl ExactSizeIterator<Item = (&'a [T], &'a [T])>,
    start: &[T],
) -> Vec<T> {
    let dim = start.len();
    let mut states = vec![T::zero(); steps.len() * dim];
    let mut before = start.to_vec();
    for ((step, input), state) in steps.zip(states.chunks_exact_mut(dim)) {
        block(step, dim).transposed_times_rows(&before, state);
        state.iter_mut().zip(input).for_each(|(state, &input)| *state += input);
        before.copy_from_slice(state);
    }
    states
}

/// xT_t = J xT_{t+1} + P x_t, in place of x_t.
pub(crate) fn smooth<T: Real>(j: &[T], p: &[T], dim: usize, states: &mut [T]) {
    let n = states.len() / dim;
    let mut own = vec![T::zero(); states.len()];
    block(p, dim).transposed_times_rows(states, &mut own);
    let mut carried = vec![T::zero(); dim];
    for t in (0..n.saturating_sub(1)).rev() {
        let (now, after) = states[t * dim..].split_at_mut(dim);
        block(j, dim).transposed_times_rows(&after[..dim], &mut carried);
        let terms = carried.iter().zip(&own[t * dim..]);
        now.iter_mut().zip(terms).for_each(|(now, (&carried, &own))| *now = carried + own);
    }
}

/// A small matrix row after row.
pub(crate) fn rows<T: Real>(x: &Mat<f64>) -> Vec<T> {
    crate::learner::to_rows(x).into_iter().map(T::of).collect()
}

fn block<T: Real>(values: &[T], dim: usize) -> BlockRef<'_, T> {
    BlockRef::new(values, dim, (0, dim), (0, dim))
}
