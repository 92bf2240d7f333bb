//! The simple recurrent layer (Elman 1990).

use super::streams::{Squash, Streams, for_each_pair, rows_of, rows_of_mut};
use crate::tensors::{Buffer, Layout, WeightId, fill_uniform};
use latens_math::linalg::{Accum, MatMut, MatRef, Par, multiply};
use latens_math::{Real, Rng};

/// h_t = f(x_t + A h_{t−1}) for each stream (Elman 1990).
#[derive(Clone, Copy, Debug)]
pub struct Elman {
    recurrent: WeightId,
    squash: Squash,
}

/// Intermediate results that the forward pass keeps for the backward pass.
#[derive(Clone, Debug, Default)]
pub struct ElmanScratch<T> {
    /// h_{t−1}, or zero where a stream is reset.
    previous: Buffer<T>,
    hidden: Buffer<T>,
    /// ∂L/∂h_t from later steps.
    later: Vec<T>,
}

impl<T: Real> ElmanScratch<T> {
    /// h_t of all rows of the last forward pass.
    pub fn hidden(&self) -> MatRef<'_, T> {
        self.hidden.view()
    }
}

impl Elman {
    /// Adds a layer of `dim` units. A is named `name`.
    pub fn new(layout: &mut Layout, name: &str, dim: usize, squash: Squash) -> Elman {
        Elman { recurrent: layout.add(name, &[dim, dim]), squash }
    }

    /// Number of units.
    pub fn dim(&self) -> usize {
        self.recurrent.n_cols()
    }

    /// A.
    pub fn recurrent(&self) -> WeightId {
        self.recurrent
    }

    /// Draws A uniformly from ±1/√`dim`.
    pub fn init<T: Real>(&self, weights: &mut [T], rng: &mut Rng) {
        let bound = 1.0 / (self.dim() as f64).sqrt();
        fill_uniform(self.recurrent.of_mut(weights), bound, rng);
    }

    /// Runs all steps of all streams. `state` holds h of each stream before the first step, and after the last step on
    /// return.
    ///
    /// # Panics
    /// If the rows do not form whole steps, or `state` does not have one row per stream.
    pub fn forward<T: Real>(
        &self,
        weights: &[T],
        x: MatRef<'_, T>,
        streams: Streams<'_>,
        state: &mut [T],
        scratch: &mut ElmanScratch<T>,
        par: Par,
    ) {
        let (dim, n_steps) = (self.dim(), streams.n_steps(x.nrows()));
        assert_eq!(state.len(), streams.n * dim, "there must be one state per stream");
        let ElmanScratch { previous, hidden, .. } = scratch;
        previous.resize(x.nrows(), dim);
        hidden.resize(x.nrows(), dim);
        hidden.view_mut().copy_from(x);
        let a = self.recurrent.mat(weights).transpose();
        for step in 0..n_steps {
            let place = streams.place(step, dim);
            let previous = &mut previous.values_mut()[place.clone()];
            previous.copy_from_slice(state);
            streams.forget(step, previous, dim);
            let hidden = &mut hidden.values_mut()[place];
            multiply(rows_of_mut(hidden, dim), Accum::Add, rows_of(previous, dim), a, par);
            for_each_pair(
                state,
                hidden,
                par,
                #[inline(always)]
                |h, a| *h = self.squash.of(a),
            );
            hidden.copy_from_slice(state);
        }
    }

    /// Adds ∂L/∂A to `gradient` and writes ∂L/∂x, given `d_out` = ∂L/∂h from the layers above.
    ///
    /// With δ_t = ∂L/∂a_t of a_t = x_t + A h_{t−1}, from the last step to the first:
    ///
    /// δ_t = (∂L/∂h_t + Aᵀ δ_{t+1}) f′, where the second term is zero if the stream is reset at step t + 1
    ///
    /// ∂L/∂A = Σ_t δ_t h_{t−1}ᵀ, ∂L/∂x_t = δ_t
    ///
    /// The state before the first step is treated as a constant (truncated backpropagation).
    #[expect(clippy::too_many_arguments, reason = "a layer with its output and gradients")]
    pub fn backward<T: Real>(
        &self,
        weights: &[T],
        streams: Streams<'_>,
        scratch: &mut ElmanScratch<T>,
        d_out: MatRef<'_, T>,
        gradient: &mut [T],
        d_x: MatMut<'_, T>,
        par: Par,
    ) {
        let (dim, n_steps) = (self.dim(), streams.n_steps(d_out.nrows()));
        let ElmanScratch { previous, hidden, later } = scratch;
        let mut d_x = d_x;
        let d_all = d_x.as_mut().try_as_row_major_mut().expect("`d_x` must be row-major");
        let mut d_all = d_all.as_dyn_stride_mut();
        later.clear();
        later.resize(streams.n * dim, T::zero());
        let a = self.recurrent.mat(weights);
        for step in (0..n_steps).rev() {
            let n = streams.n;
            let hidden = rows_of(&hidden.values()[streams.place(step, dim)], dim);
            let mut delta = d_all.as_mut().subrows_mut(step * n, n);
            delta.copy_from(d_out.subrows(step * n, n));
            add_and_scale(delta.as_mut(), rows_of(later, dim), hidden, self.squash);
            multiply(rows_of_mut(later, dim), Accum::Replace, delta.as_ref(), a, par);
            streams.forget(step, later, dim);
        }
        let d_recurrent = self.recurrent.mat_mut(gradient);
        multiply(d_recurrent, Accum::Add, d_x.as_ref().transpose(), previous.view(), par);
    }
}

/// Computes δ ← (δ + later) f′(h).
fn add_and_scale<T: Real>(
    delta: MatMut<'_, T>,
    later: MatRef<'_, T>,
    hidden: MatRef<'_, T>,
    squash: Squash,
) {
    use latens_math::rows::{for_each_chunk, row, row_mut, rows_per_chunk};
    for_each_chunk(
        (delta, later, hidden),
        rows_per_chunk(hidden.ncols()),
        Par::Seq,
        #[inline(always)]
        |(mut delta, later, hidden): (MatMut<'_, T>, _, MatRef<'_, T>)| {
            for i in 0..hidden.nrows() {
                let values = row_mut(&mut delta, i).iter_mut().zip(row(later, i));
                for ((d, &later), &h) in values.zip(row(hidden, i)) {
                    *d = (*d + later) * squash.slope(h);
                }
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{LayerCase, Outcome, buffer, check_layer, check_threads};

    struct Case {
        n_streams: usize,
        n_steps: usize,
        dim: usize,
        squash: Squash,
        fresh: Vec<bool>,
    }

    impl Case {
        fn n_rows(&self) -> usize {
            self.n_streams * self.n_steps
        }
    }

    impl LayerCase for Case {
        fn sizes(&self) -> [usize; 3] {
            [self.dim * self.dim, self.n_rows() * self.dim, self.n_rows() * self.dim]
        }

        fn run<T: Real>(&self, weights: &[T], x: &[T], d_out: &[T], par: Par) -> Outcome<T> {
            let layer = Elman::new(&mut Layout::new(), "recurrent", self.dim, self.squash);
            let streams = Streams { n: self.n_streams, fresh: &self.fresh };
            let (x, d_out) =
                (buffer(x, self.n_rows(), self.dim), buffer(d_out, self.n_rows(), self.dim));
            let mut state: Vec<T> = (0..self.n_streams * self.dim)
                .map(|i| T::of(f64::from(i as u32 % 7) / 10.0))
                .collect();
            let mut scratch = ElmanScratch::default();
            layer.forward(weights, x.view(), streams, &mut state, &mut scratch, par);
            let mut outcome = Outcome::new(self, scratch.hidden.values());
            let mut d_x = x.clone();
            let (d_x_view, gradient) = (d_x.view_mut(), &mut outcome.gradient);
            layer.backward(weights, streams, &mut scratch, d_out.view(), gradient, d_x_view, par);
            outcome.d_x = d_x.values().to_vec();
            outcome
        }
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        for squash in [Squash::Tanh, Squash::Sigmoid] {
            for (n_streams, n_steps, dim) in [(1, 1, 1), (3, 4, 5), (2, 6, 1), (1, 5, 4)] {
                let n_rows = n_streams * n_steps;
                let fresh: Vec<bool> = (0..n_rows).map(|row| row % 5 == 3).collect();
                for fresh in [vec![], fresh] {
                    check_layer(&Case { n_streams, n_steps, dim, squash, fresh });
                }
            }
        }
    }

    #[test]
    fn the_result_does_not_depend_on_the_number_of_threads() {
        let case =
            Case { n_streams: 20, n_steps: 9, dim: 300, squash: Squash::Tanh, fresh: vec![] };
        check_threads(&case);
    }

    #[test]
    fn two_steps_agree_with_the_definition() {
        let case =
            Case { n_streams: 1, n_steps: 2, dim: 1, squash: Squash::Sigmoid, fresh: vec![] };
        let out = case.run(&[0.5f64], &[0.1, -0.3], &[0.0; 2], Par::Seq).out;
        let sigmoid = |a: f64| 1.0 / (1.0 + (-a).exp());
        let first = sigmoid(0.1);
        assert!((out[0] - first).abs() < 1e-15);
        assert!((out[1] - sigmoid(-0.3 + 0.5 * first)).abs() < 1e-15);
    }
}
