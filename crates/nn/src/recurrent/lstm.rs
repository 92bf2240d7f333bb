//! Long short-term memory.

use super::streams::{Streams, for_each_pair, rows_of, rows_of_mut, sigmoid, tanh};
use crate::layers::{Dropout, Linear};
use crate::tensors::{Buffer, Layout, WeightId, fill_uniform};
use latens_math::linalg::{Accum, MatMut, MatRef, Par, multiply};
use latens_math::rows::{for_each_chunk, row, row_mut, rows_per_chunk};
use latens_math::{Real, Rng};

/// An LSTM layer with forget gates (Hochreiter and Schmidhuber 1997; Gers et al. 2000):
///
/// i, f, o = σ(·), g = tanh(·) of the four parts of W x_t + U h_{t−1} + b, in the order i, f, g, o
///
/// c_t = f ∘ c_{t−1} + i ∘ g, h_t = o ∘ tanh c_t
///
/// This is `torch.nn.LSTM`, whose two biases add up to b. In training, weights of U can be dropped for all steps of a batch
/// (Merity et al. 2018).
#[derive(Clone, Copy, Debug)]
pub struct Lstm {
    input: Linear,
    recurrent: WeightId,
}

/// Intermediate results that the forward pass keeps for the backward pass.
#[derive(Clone, Debug, Default)]
pub struct LstmScratch<T> {
    /// i, f, g, o of each row; after the backward pass, the derivatives with respect to their arguments.
    gates: Buffer<T>,
    /// h_{t−1} and c_{t−1}, or zero where a stream is reset.
    previous: Buffer<T>,
    previous_cell: Buffer<T>,
    hidden: Buffer<T>,
    /// c_t, then tanh c_t.
    cell: Buffer<T>,
    /// ∂L/∂h_t and ∂L/∂c_t from later steps.
    later: Vec<T>,
    later_cell: Vec<T>,
    /// D(U), if weights are dropped; then ∂L/∂D(U).
    recurrent: Buffer<T>,
}

impl<T: Real> LstmScratch<T> {
    /// h_t of all rows of the last forward pass.
    pub fn hidden(&self) -> MatRef<'_, T> {
        self.hidden.view()
    }
}

impl Lstm {
    /// Adds a layer of `dim` units. Its weights are named `name.input.weight`, `name.input.bias` and `name.recurrent`.
    pub fn new(layout: &mut Layout, name: &str, n_in: usize, dim: usize) -> Lstm {
        let input = Linear::new(layout, &format!("{name}.input"), n_in, 4 * dim);
        Lstm { input, recurrent: layout.add(&format!("{name}.recurrent"), &[4 * dim, dim]) }
    }

    /// Number of units.
    pub fn dim(&self) -> usize {
        self.recurrent.n_cols()
    }

    /// W and b.
    pub fn input(&self) -> Linear {
        self.input
    }

    /// U.
    pub fn recurrent(&self) -> WeightId {
        self.recurrent
    }

    /// Draws all weights uniformly from ±1/√`dim`. The biases of the forget gates are `forget_bias`; the other biases are
    /// 0. With 1 the layer initially remembers (Jozefowicz et al. 2015).
    pub fn init<T: Real>(&self, weights: &mut [T], forget_bias: f64, rng: &mut Rng) {
        let dim = self.dim();
        let bound = 1.0 / (dim as f64).sqrt();
        fill_uniform(self.input.weight().of_mut(weights), bound, rng);
        fill_uniform(self.recurrent.of_mut(weights), bound, rng);
        let bias = self.input.bias().expect("the input layer has a bias").of_mut(weights);
        bias.fill(T::zero());
        bias[dim..2 * dim].fill(T::of(forget_bias));
    }

    /// Runs all steps of all streams. `state` holds h of each stream, then c of each stream, before the first step, and
    /// after the last step on return. `dropout` is that of the weights of U.
    ///
    /// # Panics
    /// If the rows do not form whole steps, or `state` does not have two rows per stream.
    #[expect(clippy::too_many_arguments, reason = "a layer with its input, state and dropout")]
    pub fn forward<T: Real>(
        &self,
        weights: &[T],
        x: MatRef<'_, T>,
        streams: Streams<'_>,
        state: &mut [T],
        dropout: Option<Dropout>,
        scratch: &mut LstmScratch<T>,
        par: Par,
    ) {
        let (dim, n_rows) = (self.dim(), x.nrows());
        let n_steps = streams.n_steps(n_rows);
        assert_eq!(state.len(), 2 * streams.n * dim, "there must be two states per stream");
        scratch.gates.resize(n_rows, 4 * dim);
        let LstmScratch { gates, previous, previous_cell, hidden, cell, recurrent, .. } = scratch;
        for buffer in [&mut *previous, previous_cell, hidden, cell] {
            buffer.resize(n_rows, dim);
        }
        self.input.forward(weights, x, gates.view_mut(), par);
        let u = self.recurrent.mat(weights);
        let u = match dropout {
            None => u,
            Some(dropout) => {
                recurrent.resize(4 * dim, dim);
                recurrent.view_mut().copy_from(u);
                dropout.apply(recurrent.view_mut(), par);
                recurrent.view()
            }
        };
        let u = u.transpose();
        let (state_h, state_c) = state.split_at_mut(streams.n * dim);
        for step in 0..n_steps {
            let place = streams.place(step, dim);
            let previous = &mut previous.values_mut()[place.clone()];
            let previous_cell = &mut previous_cell.values_mut()[place.clone()];
            previous.copy_from_slice(state_h);
            previous_cell.copy_from_slice(state_c);
            streams.forget(step, previous, dim);
            streams.forget(step, previous_cell, dim);
            let gates = &mut gates.values_mut()[streams.place(step, 4 * dim)];
            multiply(rows_of_mut(gates, 4 * dim), Accum::Add, rows_of(previous, dim), u, par);
            let cell = &mut cell.values_mut()[place.clone()];
            let outputs = (rows_of_mut(cell, dim), rows_of_mut(state_h, dim));
            let cells = (rows_of(previous_cell, dim), rows_of_mut(state_c, dim));
            open_gates(rows_of_mut(gates, 4 * dim), cells, outputs, par);
            hidden.values_mut()[place].copy_from_slice(state_h);
        }
    }

    /// Adds ∂L/∂W, ∂L/∂U and ∂L/∂b to `gradient` and writes ∂L/∂x, given the `x` of the forward pass and `d_out` = ∂L/∂h
    /// from the layers above.
    ///
    /// From the last step to the first, where the terms of step t + 1 are zero if the stream is reset there:
    ///
    /// ∂h_t = `d_out`_t + Uᵀ δ_{t+1}, ∂c_t = ∂h_t ∘ o ∘ (1 − tanh² c_t) + f_{t+1} ∘ ∂c_{t+1}
    ///
    /// δ_t = (∂c ∘ g ∘ i(1 − i), ∂c ∘ c_{t−1} ∘ f(1 − f), ∂c ∘ i ∘ (1 − g²), ∂h ∘ tanh c_t ∘ o(1 − o))
    ///
    /// ∂L/∂U = Σ_t δ_t h_{t−1}ᵀ; the gradients of W and b are those of a linear layer with output gradient δ. `dropout` is
    /// that of the forward pass.
    #[expect(clippy::too_many_arguments, reason = "a layer with its input, output and gradients")]
    pub fn backward<T: Real>(
        &self,
        weights: &[T],
        x: MatRef<'_, T>,
        streams: Streams<'_>,
        dropout: Option<Dropout>,
        scratch: &mut LstmScratch<T>,
        d_out: MatRef<'_, T>,
        gradient: &mut [T],
        d_x: MatMut<'_, T>,
        par: Par,
    ) {
        let (dim, n) = (self.dim(), streams.n);
        let LstmScratch {
            gates,
            previous,
            previous_cell,
            cell,
            later,
            later_cell,
            recurrent: dropped,
            ..
        } = scratch;
        for later in [&mut *later, later_cell] {
            later.clear();
            later.resize(n * dim, T::zero());
        }
        let u = match dropout {
            None => self.recurrent.mat(weights),
            Some(_) => dropped.view(),
        };
        for step in (0..streams.n_steps(d_out.nrows())).rev() {
            let place = streams.place(step, dim);
            let gates = &mut gates.values_mut()[streams.place(step, 4 * dim)];
            let cells = (
                rows_of(&previous_cell.values()[place.clone()], dim),
                rows_of(&cell.values()[place], dim),
            );
            let d_hidden = (d_out.subrows(step * n, n), rows_of(later, dim));
            let d_cell = rows_of_mut(later_cell, dim);
            close_gates(rows_of_mut(gates, 4 * dim), d_cell, d_hidden, cells, par);
            multiply(rows_of_mut(later, dim), Accum::Replace, rows_of(gates, 4 * dim), u, par);
            streams.forget(step, later, dim);
            streams.forget(step, later_cell, dim);
        }
        let delta = gates.view().transpose();
        match dropout {
            None => {
                let d_recurrent = self.recurrent.mat_mut(gradient);
                multiply(d_recurrent, Accum::Add, delta, previous.view(), par);
            }
            Some(dropout) => {
                multiply(dropped.view_mut(), Accum::Replace, delta, previous.view(), par);
                dropout.apply(dropped.view_mut(), par);
                for_each_pair(self.recurrent.of_mut(gradient), dropped.values(), par, |g, d| {
                    *g += d
                });
            }
        }
        let d_x = Some((d_x, Accum::Replace));
        self.input.backward(weights, x, gates.view(), gradient, d_x, par);
    }
}

/// c_{t−1} and c_t.
type Cells<'a, T> = (MatRef<'a, T>, MatMut<'a, T>);
/// tanh c_t and h_t.
type Outputs<'a, T> = (MatMut<'a, T>, MatMut<'a, T>);
/// Two input matrices of a step.
type Pair<'a, T> = (MatRef<'a, T>, MatRef<'a, T>);

/// Computes gates, cell and output of one step.
fn open_gates<T: Real>(
    gates: MatMut<'_, T>,
    cells: Cells<'_, T>,
    outputs: Outputs<'_, T>,
    par: Par,
) {
    let size = rows_per_chunk(gates.ncols());
    for_each_chunk(
        (gates, cells, outputs),
        size,
        par,
        #[inline(always)]
        |(mut gates, (before, mut cell), (mut tanh_cell, mut hidden)): (
            MatMut<'_, T>,
            Cells<'_, T>,
            Outputs<'_, T>,
        )| {
            for r in 0..before.nrows() {
                let outputs = (row_mut(&mut tanh_cell, r), row_mut(&mut hidden, r));
                let gates = row_mut(&mut gates, r);
                open_row(gates, row(before, r), row_mut(&mut cell, r), outputs);
            }
        },
    );
}

#[inline(always)]
fn open_row<T: Real>(
    gates: &mut [T],
    before: &[T],
    cell: &mut [T],
    (tanh_cell, hidden): (&mut [T], &mut [T]),
) {
    let dim = before.len();
    let (input, rest) = gates.split_at_mut(dim);
    let (forget, rest) = rest.split_at_mut(dim);
    let (update, output) = rest.split_at_mut(dim);
    for gate in [&mut *input, forget, output] {
        gate.iter_mut().for_each(|a| *a = sigmoid(*a));
    }
    update.iter_mut().for_each(|a| *a = tanh(*a));
    for ((c, &before), ((&i, &f), &g)) in
        cell.iter_mut().zip(before).zip(input.iter().zip(&*forget).zip(&*update))
    {
        *c = f * before + i * g;
    }
    for ((y, h), (&c, &o)) in tanh_cell.iter_mut().zip(hidden).zip(cell.iter().zip(&*output)) {
        *y = tanh(c);
        *h = o * *y;
    }
}

/// Replaces the gates of a step by the derivatives with respect to their arguments, and ∂c_t by f ∘ ∂c_t.
///
/// `d_hidden` holds the two terms of ∂h_t, `cells` holds c_{t−1} and tanh c_t.
fn close_gates<T: Real>(
    gates: MatMut<'_, T>,
    d_cell: MatMut<'_, T>,
    d_hidden: Pair<'_, T>,
    cells: Pair<'_, T>,
    par: Par,
) {
    let size = rows_per_chunk(gates.ncols());
    for_each_chunk(
        (gates, d_cell, d_hidden, cells),
        size,
        par,
        #[inline(always)]
        |(mut gates, mut d_cell, (d_out, later), (before, tanh_cell)): (
            MatMut<'_, T>,
            MatMut<'_, T>,
            Pair<'_, T>,
            Pair<'_, T>,
        )| {
            for r in 0..before.nrows() {
                let d_hidden = (row(d_out, r), row(later, r));
                let cells = (row(before, r), row(tanh_cell, r));
                close_row(row_mut(&mut gates, r), row_mut(&mut d_cell, r), d_hidden, cells);
            }
        },
    );
}

#[inline(always)]
fn close_row<T: Real>(
    gates: &mut [T],
    d_cell: &mut [T],
    (d_out, later): (&[T], &[T]),
    (before, tanh_cell): (&[T], &[T]),
) {
    let (dim, one) = (before.len(), T::one());
    let (input, rest) = gates.split_at_mut(dim);
    let (forget, rest) = rest.split_at_mut(dim);
    let (update, output) = rest.split_at_mut(dim);
    let gates = input.iter_mut().zip(forget).zip(update.iter_mut().zip(output));
    let rest = d_cell.iter_mut().zip(d_out.iter().zip(later)).zip(before.iter().zip(tanh_cell));
    for (((i, f), (g, o)), ((d_cell, (&d_out, &later)), (&before, &y))) in gates.zip(rest) {
        let d_h = d_out + later;
        let d_c = *d_cell + d_h * *o * (one - y * y);
        *d_cell = d_c * *f;
        *o = d_h * y * *o * (one - *o);
        *f = d_c * before * *f * (one - *f);
        let (old_i, old_g) = (*i, *g);
        *i = d_c * old_g * old_i * (one - old_i);
        *g = d_c * old_i * (one - old_g * old_g);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{LayerCase, Outcome, buffer, check_layer, check_threads};

    struct Case {
        n_streams: usize,
        n_steps: usize,
        n_in: usize,
        dim: usize,
        fresh: Vec<bool>,
        dropout: Option<Dropout>,
    }

    impl Case {
        fn n_rows(&self) -> usize {
            self.n_streams * self.n_steps
        }

        fn layer(&self, layout: &mut Layout) -> Lstm {
            Lstm::new(layout, "lstm", self.n_in, self.dim)
        }
    }

    impl LayerCase for Case {
        fn sizes(&self) -> [usize; 3] {
            let mut layout = Layout::new();
            self.layer(&mut layout);
            [layout.len(), self.n_rows() * self.n_in, self.n_rows() * self.dim]
        }

        fn run<T: Real>(&self, weights: &[T], x: &[T], d_out: &[T], par: Par) -> Outcome<T> {
            let layer = self.layer(&mut Layout::new());
            let streams = Streams { n: self.n_streams, fresh: &self.fresh };
            let x = buffer(x, self.n_rows(), self.n_in);
            let d_out = buffer(d_out, self.n_rows(), self.dim);
            let mut state: Vec<T> = (0..2 * self.n_streams * self.dim)
                .map(|i| T::of(f64::from(i as u32 % 7) / 10.0))
                .collect();
            let mut scratch = LstmScratch::default();
            layer.forward(weights, x.view(), streams, &mut state, self.dropout, &mut scratch, par);
            let mut outcome = Outcome::new(self, scratch.hidden.values());
            let mut d_x = x.clone();
            layer.backward(
                weights,
                x.view(),
                streams,
                self.dropout,
                &mut scratch,
                d_out.view(),
                &mut outcome.gradient,
                d_x.view_mut(),
                par,
            );
            outcome.d_x = d_x.values().to_vec();
            outcome
        }
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        for (n_streams, n_steps, n_in, dim) in
            [(1, 1, 1, 1), (3, 4, 2, 3), (2, 6, 5, 1), (1, 5, 3, 4)]
        {
            let fresh: Vec<bool> = (0..n_streams * n_steps).map(|row| row % 5 == 3).collect();
            for fresh in [vec![], fresh] {
                for dropout in [None, Some(Dropout::new(0.4, 3))] {
                    let fresh = fresh.clone();
                    check_layer(&Case { n_streams, n_steps, n_in, dim, fresh, dropout });
                }
            }
        }
    }

    #[test]
    fn the_result_does_not_depend_on_the_number_of_threads() {
        for dropout in [None, Some(Dropout::new(0.4, 3))] {
            let fresh = vec![];
            check_threads(&Case { n_streams: 20, n_steps: 5, n_in: 256, dim: 256, fresh, dropout });
        }
    }

    #[test]
    fn two_steps_agree_with_the_definition() {
        let fresh = vec![true, false];
        let case = Case { n_streams: 1, n_steps: 2, n_in: 1, dim: 1, fresh, dropout: None };
        let (w, b, u) = ([0.5, -0.4, 0.3, 0.9], [0.1, 0.2, -0.3, 0.05], [0.7, 0.6, -0.2, 0.4]);
        let out = case.run(&[w, b, u].concat(), &[1.5, -0.7], &[0.0; 2], Par::Seq).out;
        let sigmoid = |a: f64| 1.0 / (1.0 + (-a).exp());
        let (mut h, mut c) = (0.0, 0.0);
        for (step, x) in [1.5, -0.7].into_iter().enumerate() {
            let a: [f64; 4] = std::array::from_fn(|k| w[k] * x + b[k] + u[k] * h);
            c = sigmoid(a[1]) * c + sigmoid(a[0]) * a[2].tanh();
            h = sigmoid(a[3]) * f64::tanh(c);
            assert!((out[step] - h).abs() < 1e-15, "{} and {h}", out[step]);
        }
    }

    #[test]
    fn initial_forget_biases_are_one() {
        let mut layout = Layout::new();
        let layer = Lstm::new(&mut layout, "lstm", 3, 4);
        let mut weights = vec![9f32; layout.len()];
        layer.init(&mut weights, 1.0, &mut Rng::new(1));
        let bias = layer.input.bias().unwrap().of(&weights);
        assert_eq!(bias, [[0.0; 4], [1.0; 4], [0.0; 4], [0.0; 4]].concat());
        assert!(layer.recurrent.of(&weights).iter().all(|w| w.abs() <= 0.5));
    }
}
