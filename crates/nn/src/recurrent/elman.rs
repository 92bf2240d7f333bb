//! The simple recurrent layer (Elman 1990).

use super::streams::{Squash, Streams, for_each_pair, rows_of, rows_of_mut};
use crate::tensors::{Buffer, Layout, WeightId, fill_uniform};
use latens_math::linalg::{Accum, MatMut, MatRef, Par, multiply};
use latens_math::rows::{for_each_chunk, row, row_mut, rows_per_chunk};
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
    /// ∂L/∂a_t of all rows.
    deltas: Buffer<T>,
    /// Aᵀ in row-major order, which saves reordering A in every step.
    transposed: Buffer<T>,
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
        let ElmanScratch { previous, hidden, transposed, .. } = scratch;
        previous.resize(x.nrows(), dim);
        hidden.resize(x.nrows(), dim);
        hidden.view_mut().copy_from(x);
        let (n_together, inner) = tasks(streams.n, n_steps, dim, par);
        let mut a = self.recurrent.mat(weights).transpose();
        if n_together < streams.n {
            transposed.resize(dim, dim);
            transposed.view_mut().copy_from(a);
            a = transposed.view();
        }
        let n = streams.n * dim;
        let (previous, hidden) = (by_step(previous, n_steps, n), by_step(hidden, n_steps, n));
        let values = (state, previous, hidden, 0..n);
        for_each_chunk(values, dim * n_together, par, |values| {
            let (state, previous, hidden, places) = values;
            let (mut previous, mut hidden) = (previous.transpose_mut(), hidden.transpose_mut());
            for step in 0..n_steps {
                let (previous, hidden) = (row_mut(&mut previous, step), row_mut(&mut hidden, step));
                previous.copy_from_slice(state);
                streams.forget_some(step, places.start / dim, previous, dim);
                multiply(rows_of_mut(hidden, dim), Accum::Add, rows_of(previous, dim), a, inner);
                for_each_pair(
                    state,
                    hidden,
                    inner,
                    #[inline(always)]
                    |h, a| *h = self.squash.of(a),
                );
                hidden.copy_from_slice(state);
            }
        });
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
        let ElmanScratch { previous, hidden, later, deltas, .. } = scratch;
        let mut d_x = d_x;
        deltas.resize(d_out.nrows(), dim);
        deltas.view_mut().copy_from(d_out);
        later.clear();
        later.resize(streams.n * dim, T::zero());
        let (n_together, inner) = tasks(streams.n, n_steps, dim, par);
        let a = self.recurrent.mat(weights);
        let n = streams.n * dim;
        let hidden = MatRef::from_row_major_slice(hidden.values(), n_steps, n).transpose();
        let values = (&mut later[..], by_step(deltas, n_steps, n), hidden, 0..n);
        for_each_chunk(values, dim * n_together, par, |values| {
            let (later, deltas, hidden, places) = values;
            let (mut deltas, hidden) = (deltas.transpose_mut(), hidden.transpose());
            for step in (0..n_steps).rev() {
                let mut delta = rows_of_mut(row_mut(&mut deltas, step), dim);
                let hidden = rows_of(row(hidden, step), dim);
                add_and_scale(delta.as_mut(), rows_of(later, dim), hidden, self.squash);
                multiply(rows_of_mut(later, dim), Accum::Replace, delta.as_ref(), a, inner);
                streams.forget_some(step, places.start / dim, later, dim);
            }
        });
        d_x.copy_from(deltas.view());
        let d_recurrent = self.recurrent.mat_mut(gradient);
        multiply(d_recurrent, Accum::Add, d_x.as_ref().transpose(), previous.view(), par);
    }
}

/// Returns the number of streams that a thread processes for all steps, and the threads of the products of each step.
///
/// Streams do not depend on each other. If there are enough of them for all threads, threads need not wait for each other
/// after each step. The results are the same.
fn tasks(n_streams: usize, n_steps: usize, dim: usize, par: Par) -> (usize, Par) {
    /// Rows of a product that are worth reading A.
    const STREAMS: usize = 10;
    /// Steps that are worth a copy of A.
    const STEPS: usize = 8;
    /// Smaller products are computed by other functions, which may round in another way.
    const DIM: usize = 64;
    let n_threads = match par {
        Par::Seq => 1,
        Par::Rayon(n_threads) => n_threads.get(),
    };
    let n_tasks = n_streams.div_ceil(STREAMS);
    if n_steps < STEPS || dim < DIM || n_tasks < n_threads.max(2) {
        return (n_streams.max(1), par);
    }
    // Products of a single row are rounded in another way.
    let mut n_together = n_streams.div_ceil(n_tasks);
    while n_streams % n_together == 1 {
        n_together += 1;
    }
    (n_together, Par::Seq)
}

/// Views the `n` values of each step as a matrix with one column per step.
fn by_step<T: Real>(values: &mut Buffer<T>, n_steps: usize, n: usize) -> MatMut<'_, T> {
    MatMut::from_row_major_slice_mut(values.values_mut(), n_steps, n).transpose_mut()
}

/// Computes δ ← (δ + later) f′(h).
fn add_and_scale<T: Real>(
    delta: MatMut<'_, T>,
    later: MatRef<'_, T>,
    hidden: MatRef<'_, T>,
    squash: Squash,
) {
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
            let state = (0..self.n_streams * self.dim)
                .map(|i| T::of(f64::from(i as u32 % 7) / 10.0))
                .collect();
            self.run_from(state, weights, x, d_out, par)
        }
    }

    impl Case {
        fn run_from<T: Real>(
            &self,
            mut state: Vec<T>,
            weights: &[T],
            x: &[T],
            d_out: &[T],
            par: Par,
        ) -> Outcome<T> {
            let layer = Elman::new(&mut Layout::new(), "recurrent", self.dim, self.squash);
            let streams = Streams { n: self.n_streams, fresh: &self.fresh };
            let (x, d_out) =
                (buffer(x, self.n_rows(), self.dim), buffer(d_out, self.n_rows(), self.dim));
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
    fn no_thread_has_a_single_one_of_several_streams() {
        for n_streams in 2..300 {
            for n_threads in 1..20 {
                let (n_together, _) = tasks(n_streams, 20, 64, Par::rayon(n_threads));
                assert_ne!(n_streams % n_together, 1, "{n_streams} streams, {n_threads} threads");
            }
        }
    }

    #[test]
    fn streams_do_not_depend_on_each_other() {
        let (n_steps, dim, n) = (9, 64, 31);
        let fresh: Vec<bool> = (0..n_steps * n).map(|row| row % 11 == 3).collect();
        let case = |n_streams, fresh| Case { n_streams, n_steps, dim, squash: Squash::Tanh, fresh };
        let weights: Vec<f64> = (0..dim * dim).map(|i| (i as f64).sin() / 4.0).collect();
        let x: Vec<f64> = (0..n_steps * n * dim).map(|i| (i as f64).cos()).collect();
        let d_out: Vec<f64> = x.iter().map(|x| 1.0 - x * x).collect();
        let all = case(n, fresh.clone()).run(&weights, &x, &d_out, Par::Seq);
        let mut gradient = vec![0.0; dim * dim];
        for stream in 0..n {
            let own = |values: &[f64]| -> Vec<f64> {
                let rows = values.chunks_exact(dim).skip(stream).step_by(n);
                rows.flatten().copied().collect()
            };
            let fresh = fresh.iter().copied().skip(stream).step_by(n).collect();
            let case = case(1, fresh);
            // The first state of a case depends on the number of its stream.
            let state: Vec<f64> =
                (0..dim).map(|i| ((stream * dim + i) % 7) as f64 / 10.0).collect();
            let one = case.run_from(state, &weights, &own(&x), &own(&d_out), Par::Seq);
            let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
            assert!(close(&one.out, &own(&all.out)) && close(&one.d_x, &own(&all.d_x)));
            gradient.iter_mut().zip(one.gradient).for_each(|(sum, one)| *sum += one);
        }
        assert!(gradient.iter().zip(&all.gradient).all(|(a, b)| (a - b).abs() < 1e-10));
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
