//! States of the words of a text: filtered (from the words so far) and smoothed (from all of them), with the
//! gains that filter and smoother tend to.

use crate::model::Lds;
use faer::Mat;
use latens_corpus::WordId;
use latens_math::BlockRef;

impl Lds {
    /// x_t = H x_{t−1} + B u_t for each word, row after row, from the state x_0 or 0. A word that was never
    /// seen says nothing: the state goes on by A.
    pub fn filter(&self, words: &[WordId], start: Option<&[f32]>) -> Vec<f32> {
        let dim = self.dim();
        let closed = rows(&self.steady.h);
        let open = rows(&self.dynamics.a);
        let mut states = vec![0.0; words.len() * dim];
        let mut before = start.map_or_else(|| vec![0.0; dim], <[f32]>::to_vec);
        for (&word, state) in words.iter().zip(states.chunks_exact_mut(dim)) {
            let is_seen = self.counts[word.index()] > 0;
            let step = if is_seen { &closed } else { &open };
            block(step, dim).transposed_times_rows(&before, state);
            let input = self.inputs.row(word.index());
            state.iter_mut().zip(input).for_each(|(state, &input)| *state += input);
            before.copy_from_slice(state);
        }
        states
    }

    /// xT_t = J xT_{t+1} + P x_t, in place of the filtered states, row after row.
    pub fn smooth(&self, states: &mut [f32]) {
        let dim = self.dim();
        let (j, p) = (rows(&self.steady.j), rows(&self.steady.p));
        let n = states.len() / dim;
        let mut own = vec![0.0; states.len()];
        block(&p, dim).transposed_times_rows(states, &mut own);
        let mut carried = vec![0.0; dim];
        for t in (0..n.saturating_sub(1)).rev() {
            let (now, after) = states[t * dim..].split_at_mut(dim);
            block(&j, dim).transposed_times_rows(&after[..dim], &mut carried);
            let terms = carried.iter().zip(&own[t * dim..]);
            now.iter_mut().zip(terms).for_each(|(now, (&carried, &own))| *now = carried + own);
        }
    }
}

fn rows(x: &Mat<f64>) -> Vec<f32> {
    crate::learner::to_rows(x).into_iter().map(|value| value as f32).collect()
}

fn block(values: &[f32], dim: usize) -> BlockRef<'_, f32> {
    BlockRef::new(values, dim, (0, dim), (0, dim))
}
