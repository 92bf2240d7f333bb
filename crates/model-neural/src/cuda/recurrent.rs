//! Recurrent layers on the device; see `latens_nn` for their definitions.

use super::layers::{Rows, Scratch, Weights, Worker};
use Transposed::{No, Yes};
use latens_cuda::{
    Array, Columns, CudaError, Device, Dropout, ProductShape, Recordings, Shape, Squash, TimeStep,
    Transposed,
};
use latens_nn as nn;
use std::ops::Range;

/// Whether one kernel per time step multiplies by the recurrent weights, too. With more products, cuBLAS is faster by more
/// than the start of a second kernel takes: on an H200 the single kernel makes epochs of an LSTM a quarter shorter with 20
/// streams and 256 units, and 15 % longer with 640 units. Few streams of wide layers have not been measured.
fn is_small(n_streams: usize, dim: usize) -> bool {
    dim <= 512 && n_streams * dim * dim <= 1 << 22
}

/// h_t = f(x_t + A h_{t−1}).
#[derive(Debug)]
pub(super) struct Elman {
    recurrent: Range<usize>,
    squash: Squash,
    dim: usize,
    /// h before each time step and after the last.
    previous: Array<f32>,
    /// x, then h.
    pub(super) hidden: Array<f32>,
    pub(super) out: Array<f32>,
    recordings: Recordings,
}

impl Elman {
    pub(super) fn new(
        device: &Device,
        layer: &nn::Elman,
        squash: nn::Squash,
    ) -> Result<Elman, CudaError> {
        Ok(Elman {
            recurrent: layer.recurrent().range(),
            squash: match squash {
                nn::Squash::Tanh => Squash::Tanh,
                nn::Squash::Sigmoid => Squash::Sigmoid,
            },
            dim: layer.dim(),
            previous: device.zeros(1)?,
            hidden: device.zeros(1)?,
            out: device.zeros(1)?,
            recordings: Recordings::default(),
        })
    }

    /// On entry, `hidden` contains x. `state` contains the recurrent states.
    pub(super) fn forward(
        &mut self,
        worker: Worker<'_>,
        weights: &Array<f32>,
        rows: &Rows<'_>,
        state: &mut Array<f32>,
        dropout: Dropout,
    ) -> Result<(), CudaError> {
        let Elman { dim, squash, .. } = *self;
        let (device, n) = (worker.device, rows.n_streams);
        let shape = Shape { rows: n, columns: dim };
        device.reserve(&mut self.previous, (rows.n() + n) * dim)?;
        device.reserve(&mut self.out, rows.n() * dim)?;
        remember(device, state, &mut self.previous, rows, dim)?;
        let Elman { previous, hidden, recurrent, recordings, .. } = &mut *self;
        worker.start(recordings, rows.n_steps, || {
            for step in 0..rows.n_steps {
                let (place, next) = (rows.place(step, dim), rows.place(step + 1, dim));
                let fresh = rows.fresh(step + 1);
                if is_small(n, dim) {
                    let states = (&mut *previous, place.start..next.end);
                    let (h, a) = ((&mut *hidden, place), (weights, recurrent.clone()));
                    device.elman_product_step(h, states, a, fresh, squash, shape)?;
                    continue;
                }
                let h = (&*previous, place.clone(), No);
                let a = (weights, recurrent.clone(), Yes);
                let product = ProductShape { n, m: dim, k: dim };
                worker.multiply((hidden, place.clone()), 1.0, h, a, product)?;
                device.elman_step((hidden, place), (previous, next), fresh, squash, shape)?;
            }
            Ok(())
        })?;
        keep(device, &self.previous, state, rows, dim)?;
        device.dropout(&mut self.out, (&self.hidden, 0..rows.n() * dim), dropout)
    }

    /// Adds the derivatives of A and writes those of x, given those of h.
    pub(super) fn backward(
        &mut self,
        worker: Worker<'_>,
        learned: &mut Weights,
        rows: &Rows<'_>,
        d_hidden: &Array<f32>,
        d_x: &mut Array<f32>,
        scratch: &mut Scratch,
    ) -> Result<(), CudaError> {
        let Elman { dim, squash, .. } = *self;
        let (device, n) = (worker.device, rows.n_streams);
        let shape = Shape { rows: n, columns: dim };
        let Scratch { transposed, later, .. } = scratch;
        let Elman { hidden, recurrent, recordings, .. } = &mut *self;
        if is_small(n, dim) {
            device.reserve(transposed, recurrent.len())?;
            let square = Shape { rows: dim, columns: dim };
            device.transpose(transposed, (&learned.weights, recurrent.clone()), square)?;
        } else {
            device.reserve(later, n * dim)?;
        }
        worker.start(recordings, rows.n_steps, || {
            for step in (0..rows.n_steps).rev() {
                let (place, at) = (rows.place(step, dim), TimeStep::of(step, rows.n_steps));
                let values = ((d_hidden, place.clone()), (&*hidden, place.clone()));
                let fresh = rows.fresh(step + 1);
                if is_small(n, dim) {
                    let (deltas, later) =
                        ((&mut *d_x, rows.with_next(step, dim)), (&*transposed, at));
                    device.elman_product_backward(deltas, values, later, fresh, squash, shape)?;
                    continue;
                }
                let (delta, of_later) = ((&mut *d_x, place.clone()), (&*later, at));
                device.elman_backward(delta, values, of_later, fresh, squash, shape)?;
                if step > 0 {
                    let a = (&learned.weights, recurrent.clone(), No);
                    let product = ProductShape { n, m: dim, k: dim };
                    worker.multiply((later, 0..n * dim), 0.0, (d_x, place, No), a, product)?;
                }
            }
            Ok(())
        })?;
        let all = 0..rows.n() * dim;
        let out = (&mut learned.gradient, self.recurrent.clone());
        let (delta, previous) = ((&*d_x, all.clone(), Yes), (&self.previous, all, No));
        worker.multiply(out, 1.0, delta, previous, ProductShape { n: dim, m: dim, k: rows.n() })
    }
}

/// Long short-term memory.
#[derive(Debug)]
pub(super) struct Lstm {
    input: Range<usize>,
    bias: Range<usize>,
    recurrent: Range<usize>,
    n_in: usize,
    dim: usize,
    gates: Array<f32>,
    /// h and c before each time step and after the last.
    previous: Array<f32>,
    cells: Array<f32>,
    hidden: Array<f32>,
    tanh_cell: Array<f32>,
    /// U after dropout.
    dropped: Array<f32>,
    pub(super) out: Array<f32>,
    recordings: Recordings,
}

/// Dropout of an LSTM layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct LstmDropout {
    /// Of its output.
    pub(super) units: Dropout,
    /// Of U.
    pub(super) weights: Dropout,
}

impl Lstm {
    pub(super) fn new(device: &Device, layer: &nn::Lstm) -> Result<Lstm, CudaError> {
        let one = || device.zeros(1);
        Ok(Lstm {
            input: layer.input().weight().range(),
            bias: layer.input().bias().expect("the layer has a bias").range(),
            recurrent: layer.recurrent().range(),
            n_in: layer.input().n_in(),
            dim: layer.dim(),
            gates: one()?,
            previous: one()?,
            cells: one()?,
            hidden: one()?,
            tanh_cell: one()?,
            dropped: one()?,
            out: one()?,
            recordings: Recordings::default(),
        })
    }

    /// Number of units.
    pub(super) fn dim(&self) -> usize {
        self.dim
    }

    /// `state` contains h and `cell` contains c of each stream.
    #[expect(clippy::too_many_arguments, reason = "a layer, its input and its state")]
    pub(super) fn forward(
        &mut self,
        worker: Worker<'_>,
        weights: &Array<f32>,
        x: &Array<f32>,
        rows: &Rows<'_>,
        state: &mut Array<f32>,
        cell: &mut Array<f32>,
        dropout: LstmDropout,
    ) -> Result<(), CudaError> {
        let Lstm { n_in, dim, .. } = *self;
        let (device, n) = (worker.device, rows.n_streams);
        let shape = Shape { rows: n, columns: dim };
        if dropout.weights.rate > 0.0 {
            device.reserve(&mut self.dropped, self.recurrent.len())?;
            let u = (weights, self.recurrent.clone());
            device.dropout(&mut self.dropped, u, dropout.weights)?;
        }
        let Lstm { gates, previous, cells, hidden, tanh_cell, dropped, out, recordings, .. } = self;
        for array in [&mut *previous, cells, hidden, tanh_cell, out] {
            device.reserve(array, (rows.n() + n) * dim)?;
        }
        device.reserve(gates, 4 * rows.n() * dim)?;
        let (x, w) = ((x, 0..rows.n() * n_in, No), (weights, self.input.clone(), Yes));
        let sums = (&mut *gates, 0..4 * rows.n() * dim);
        worker.multiply(sums, 0.0, x, w, ProductShape { n: rows.n(), m: 4 * dim, k: n_in })?;
        remember(device, state, previous, rows, dim)?;
        remember(device, cell, cells, rows, dim)?;
        let u = match dropout.weights.rate > 0.0 {
            true => (&*dropped, 0..self.recurrent.len()),
            false => (weights, self.recurrent.clone()),
        };
        worker.start(recordings, rows.n_steps, || {
            for step in 0..rows.n_steps {
                let (place, wide) = (rows.place(step, dim), rows.place(step, 4 * dim));
                let next = rows.place(step + 1, dim);
                let both = place.start..next.end;
                let bias = (weights, self.bias.clone());
                let fresh = rows.fresh(step + 1);
                if is_small(n, dim) {
                    let out = ((&mut *hidden, place.clone()), (&mut *tanh_cell, place));
                    let kept = ((&mut *previous, both.clone()), (&mut *cells, both));
                    let learned = (u.clone(), bias);
                    device.lstm_product_step((gates, wide), out, kept, learned, fresh, shape)?;
                    continue;
                }
                let (h, u) = ((&*previous, place.clone(), No), (u.0, u.1.clone(), Yes));
                let product = ProductShape { n, m: 4 * dim, k: dim };
                worker.multiply((gates, wide.clone()), 1.0, h, u, product)?;
                let out = ((&mut *hidden, place.clone()), (&mut *tanh_cell, place));
                let kept = ((&mut *previous, next), (&mut *cells, both));
                device.lstm_step((gates, wide), out, kept, bias, fresh, shape)?;
            }
            Ok(())
        })?;
        keep(device, previous, state, rows, dim)?;
        keep(device, cells, cell, rows, dim)?;
        device.dropout(out, (&*hidden, 0..rows.n() * dim), dropout.units)
    }

    /// Writes the derivatives of U, adds those of the other weights and writes those of x, given those of h. `dropout`
    /// is that of U in the forward pass.
    #[expect(clippy::too_many_arguments, reason = "a layer, its input and output, and gradients")]
    pub(super) fn backward(
        &mut self,
        worker: Worker<'_>,
        learned: &mut Weights,
        x: &Array<f32>,
        rows: &Rows<'_>,
        d_hidden: &Array<f32>,
        d_x: &mut Array<f32>,
        dropout: Dropout,
        scratch: &mut Scratch,
    ) -> Result<(), CudaError> {
        let Lstm { n_in, dim, .. } = *self;
        let (device, n, all) = (worker.device, rows.n_streams, rows.n());
        let shape = Shape { rows: n, columns: dim };
        let Scratch { transposed, later, later_cell, .. } = scratch;
        device.reserve(later_cell, n * dim)?;
        let Lstm { gates, cells, tanh_cell, dropped, recurrent, recordings, .. } = &mut *self;
        let u = match dropout.rate > 0.0 {
            true => (&*dropped, 0..recurrent.len()),
            false => (&learned.weights, recurrent.clone()),
        };
        if is_small(n, dim) {
            device.reserve(transposed, recurrent.len())?;
            device.transpose(transposed, u.clone(), Shape { rows: 4 * dim, columns: dim })?;
        } else {
            device.reserve(later, n * dim)?;
        }
        worker.start(recordings, rows.n_steps, || {
            for step in (0..rows.n_steps).rev() {
                let (place, wide) = (rows.place(step, dim), rows.place(step, 4 * dim));
                let cells = ((&*cells, place.clone()), (&*tanh_cell, place.clone()));
                let (fresh, at) = (rows.fresh(step + 1), TimeStep::of(step, rows.n_steps));
                let d_out = (d_hidden, place);
                if is_small(n, dim) {
                    let own = (&mut *gates, rows.with_next(step, 4 * dim));
                    let of_later = (&*transposed, &mut *later_cell, at);
                    device.lstm_product_backward(own, d_out, of_later, cells, fresh, shape)?;
                    continue;
                }
                let own = (&mut *gates, wide.clone());
                let of_later = (&*later, &mut *later_cell, at);
                device.lstm_backward(own, d_out, of_later, cells, fresh, shape)?;
                if step > 0 {
                    let (delta, u) = ((&*gates, wide, No), (u.0, u.1.clone(), No));
                    let product = ProductShape { n, m: dim, k: 4 * dim };
                    worker.multiply((later, 0..n * dim), 0.0, delta, u, product)?;
                }
            }
            Ok(())
        })?;
        let Weights { weights, gradient } = learned;
        let delta = |transposed| (&self.gates, 0..4 * all * dim, transposed);
        let previous = (&self.previous, 0..all * dim, No);
        let out = (&mut *gradient, self.recurrent.clone());
        let product = ProductShape { n: 4 * dim, m: dim, k: all };
        worker.multiply(out, 0.0, delta(Yes), previous, product)?;
        if dropout.rate > 0.0 {
            device.dropout_in_place((&mut *gradient, self.recurrent.clone()), dropout)?;
        }
        let (out, x) = ((&mut *gradient, self.input.clone()), (x, 0..all * n_in, No));
        worker.multiply(out, 1.0, delta(Yes), x, ProductShape { n: 4 * dim, m: n_in, k: all })?;
        let bias = (gradient, self.bias.clone());
        device.add_column_sums(bias, &self.gates, all, Columns::all(4 * dim))?;
        let w = (&*weights, self.input.clone(), No);
        let product = ProductShape { n: all, m: n_in, k: 4 * dim };
        worker.multiply((d_x, 0..all * n_in), 0.0, delta(No), w, product)
    }
}

/// Copies the recurrent states to the first time step.
fn remember(
    device: &Device,
    state: &Array<f32>,
    previous: &mut Array<f32>,
    rows: &Rows<'_>,
    dim: usize,
) -> Result<(), CudaError> {
    let (n, place) = (rows.n_streams, rows.place(0, dim));
    let shape = Shape { rows: n, columns: dim };
    device.keep_rows((previous, place.clone()), (state, place), rows.fresh(0), shape)
}

/// Copies the states after the last time step back to the recurrent states.
fn keep(
    device: &Device,
    previous: &Array<f32>,
    state: &mut Array<f32>,
    rows: &Rows<'_>,
    dim: usize,
) -> Result<(), CudaError> {
    let (last, fresh) = (rows.place(rows.n_steps, dim), rows.fresh(rows.n_steps));
    let state = (state, rows.place(0, dim));
    device.keep_rows(state, (previous, last), fresh, Shape { rows: rows.n_streams, columns: dim })
}
