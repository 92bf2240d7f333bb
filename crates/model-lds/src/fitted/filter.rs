//! The steady-state filter and smoother: states given the words so far, and given all words.

use crate::model::{Lds, StepMatrices};
use latens_corpus::WordId;
use latens_math::{BlockRef, Real};
use latens_model::Matrix;

impl Lds {
    /// The filtered states x_t = H x_{t−1} + B u_t of a sequence of words, one row per word, starting from x_0 = `start`
    /// or 0.
    ///
    /// A word that was never seen carries no information: the state advances by A.
    pub fn filter(&self, words: &[WordId], start: Option<&[f32]>) -> Matrix<f32> {
        let StepMatrices { known_word, unseen_word, .. } = &self.step_matrices;
        let is_known = |word: &WordId| self.counts[word.index()] > 0;
        let step = |word: &WordId| if is_known(word) { known_word } else { unseen_word };
        let steps = words.iter().map(|word| (&step(word)[..], self.inputs.row(word.index())));
        let states = match start {
            Some(start) => filter(steps, start),
            None => filter(steps, &vec![0.0; self.dim()]),
        };
        Matrix::from_vec(words.len(), self.dim(), states)
    }

    /// Overwrites filtered states by the smoothed states xT_t = J xT_{t+1} + P x_t.
    pub fn smooth(&self, states: &mut Matrix<f32>) {
        let StepMatrices { from_next, from_filtered, .. } = &self.step_matrices;
        smooth(from_next, from_filtered, self.dim(), states.as_mut_slice());
    }
}

/// The states x_t = step_t x_{t−1} + input_t, row-major, for pairs of a row-major matrix step_t and a vector input_t.
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

/// Overwrites x_t by xT_t = J xT_{t+1} + P x_t.
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

fn block<T: Real>(values: &[T], dim: usize) -> BlockRef<'_, T> {
    BlockRef::new(values, dim, 0..dim, 0..dim)
}
