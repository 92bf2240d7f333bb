//! Layers on the device; see `latens_nn` for their definitions.

use Transposed::{No, Yes};
use latens_cuda::{
    Array, Columns, CudaError, Device, Dropout, Fresh, Precision, Recordings, Squash, Transposed,
};
use latens_nn::{self as nn, Linear};
use std::ops::Range;

/// Weights and their gradient.
#[derive(Debug)]
pub(super) struct Weights {
    pub(super) weights: Array<f32>,
    pub(super) gradient: Array<f32>,
}

/// The rows of a batch: a number of streams in each of several time steps.
#[derive(Clone, Debug)]
pub(super) struct Rows<'a> {
    pub(super) n_streams: usize,
    pub(super) n_steps: usize,
    /// The array with reset flags and their offset, if there are any.
    pub(super) ints: &'a Array<u32>,
    pub(super) fresh: Option<usize>,
}

impl Rows<'_> {
    pub(super) fn n(&self) -> usize {
        self.n_streams * self.n_steps
    }

    /// The range of a time step in rows of length `dim`.
    fn place(&self, step: usize, dim: usize) -> Range<usize> {
        step * self.n_streams * dim..(step + 1) * self.n_streams * dim
    }

    /// The reset flags of a time step; none after the last step.
    fn fresh(&self, step: usize) -> Fresh<'_> {
        let first = self.fresh.filter(|_| step < self.n_steps);
        Fresh { marks: self.ints, first: first.map(|first| first + step * self.n_streams) }
    }
}

/// The device and the precision of its matrix products.
#[derive(Clone, Copy)]
pub(super) struct Worker<'a> {
    pub(super) device: &'a Device,
    pub(super) precision: Precision,
}

impl Worker<'_> {
    /// out = scale · out + A B; see [`Device::multiply`].
    pub(super) fn multiply(
        self,
        out: (&mut Array<f32>, Range<usize>),
        scale: f32,
        a: (&Array<f32>, Range<usize>, Transposed),
        b: (&Array<f32>, Range<usize>, Transposed),
        sizes: (usize, usize, usize),
    ) -> Result<(), CudaError> {
        self.device.multiply(out, scale, a, b, sizes, self.precision)
    }

    /// Starts the time steps of a layer, all at once if there are many.
    fn start(
        self,
        recordings: &mut Recordings,
        n_steps: usize,
        mut steps: impl FnMut() -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        /// With fewer time steps, a recording takes as long to start as its kernels.
        const MIN_STEPS: usize = 4;
        if n_steps < MIN_STEPS {
            return steps();
        }
        self.device.replay(recordings, steps)
    }
}

/// Buffers shared by the backward passes of all layers.
#[derive(Debug)]
pub(super) struct Scratch {
    later: Array<f32>,
    later_cell: Array<f32>,
    partial: Array<f32>,
}

impl Scratch {
    pub(super) fn new(device: &Device) -> Result<Scratch, CudaError> {
        let one = || device.zeros(1);
        Ok(Scratch { later: one()?, later_cell: one()?, partial: one()? })
    }
}

/// y = D(ReLU(W x + b)).
#[derive(Debug)]
pub(super) struct Relu {
    weight: Range<usize>,
    bias: Range<usize>,
    n_in: usize,
    dim: usize,
    pub(super) out: Array<f32>,
    d_z: Array<f32>,
}

impl Relu {
    pub(super) fn new(device: &Device, layer: &Linear) -> Result<Relu, CudaError> {
        Ok(Relu {
            weight: layer.weight().range(),
            bias: layer.bias().expect("the layer has a bias").range(),
            n_in: layer.n_in(),
            dim: layer.n_out(),
            out: device.zeros(1)?,
            d_z: device.zeros(1)?,
        })
    }

    pub(super) fn forward(
        &mut self,
        worker: Worker<'_>,
        weights: &Array<f32>,
        x: &Array<f32>,
        n: usize,
        dropout: Dropout,
    ) -> Result<(), CudaError> {
        let Relu { n_in, dim, .. } = *self;
        worker.device.reserve(&mut self.out, n * dim)?;
        let (x, w) = ((x, 0..n * n_in, No), (weights, self.weight.clone(), Yes));
        worker.multiply((&mut self.out, 0..n * dim), 0.0, x, w, (n, dim, n_in))?;
        let Dropout { rate, seed, .. } = dropout;
        worker.device.bias_relu(&mut self.out, (weights, self.bias.clone()), n, (rate, seed))
    }

    /// Adds the derivatives of the weights and writes those of `x`, given those of `out`.
    #[expect(clippy::too_many_arguments, reason = "a layer, its input and output, and gradients")]
    pub(super) fn backward(
        &mut self,
        worker: Worker<'_>,
        learned: &mut Weights,
        x: &Array<f32>,
        d_out: &Array<f32>,
        d_x: &mut Array<f32>,
        n: usize,
        rate: f32,
        scratch: &mut Scratch,
    ) -> Result<(), CudaError> {
        let Relu { n_in, dim, .. } = *self;
        let (device, scale) = (worker.device, 1.0 / (1.0 - rate));
        device.reserve(&mut self.d_z, n * dim)?;
        let Weights { weights, gradient } = learned;
        let bias = (&mut *gradient, self.bias.clone());
        let values = (&self.out, d_out);
        device.relu_backward(&mut self.d_z, values, n, scale, bias, &mut scratch.partial)?;
        let d_z = |transposed| (&self.d_z, 0..n * dim, transposed);
        let out = (gradient, self.weight.clone());
        worker.multiply(out, 1.0, d_z(Yes), (x, 0..n * n_in, No), (dim, n_in, n))?;
        let w = (&*weights, self.weight.clone(), No);
        worker.multiply((d_x, 0..n * n_in), 0.0, d_z(No), w, (n, n_in, dim))
    }
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
        device.reserve(&mut self.previous, (rows.n() + n) * dim)?;
        device.reserve(&mut self.out, rows.n() * dim)?;
        remember(device, state, &mut self.previous, rows, dim)?;
        let Elman { previous, hidden, recurrent, recordings, .. } = &mut *self;
        worker.start(recordings, rows.n_steps, || {
            for step in 0..rows.n_steps {
                let place = rows.place(step, dim);
                let h = (&*previous, place.clone(), No);
                let a = (weights, recurrent.clone(), Yes);
                worker.multiply((hidden, place.clone()), 1.0, h, a, (n, dim, dim))?;
                let next = (&mut *previous, rows.place(step + 1, dim));
                let fresh = rows.fresh(step + 1);
                device.elman_step((hidden, place), next, fresh, squash, (n, dim))?;
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
        let (device, n, last) = (worker.device, rows.n_streams, rows.n_steps - 1);
        let Scratch { later, .. } = scratch;
        device.reserve(later, n * dim)?;
        let Elman { hidden, recurrent, recordings, .. } = &mut *self;
        worker.start(recordings, rows.n_steps, || {
            for step in (0..rows.n_steps).rev() {
                let place = rows.place(step, dim);
                let values = ((d_hidden, place.clone()), (&*hidden, place.clone()));
                let delta = (&mut *d_x, place.clone());
                let fresh = rows.fresh(step + 1);
                let later_of = (&*later, step < last);
                device.elman_backward(delta, values, later_of, fresh, squash, (n, dim))?;
                let a = (&learned.weights, recurrent.clone(), No);
                worker.multiply((later, 0..n * dim), 0.0, (d_x, place, No), a, (n, dim, dim))?;
            }
            Ok(())
        })?;
        let all = 0..rows.n() * dim;
        let out = (&mut learned.gradient, self.recurrent.clone());
        let (delta, previous) = ((&*d_x, all.clone(), Yes), (&self.previous, all, No));
        worker.multiply(out, 1.0, delta, previous, (dim, dim, rows.n()))
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
        worker.multiply(sums, 0.0, x, w, (rows.n(), 4 * dim, n_in))?;
        remember(device, state, previous, rows, dim)?;
        remember(device, cell, cells, rows, dim)?;
        let u = match dropout.weights.rate > 0.0 {
            true => (&*dropped, 0..self.recurrent.len(), Yes),
            false => (weights, self.recurrent.clone(), Yes),
        };
        worker.start(recordings, rows.n_steps, || {
            for step in 0..rows.n_steps {
                let (place, wide) = (rows.place(step, dim), rows.place(step, 4 * dim));
                let h = (&*previous, place.clone(), No);
                worker.multiply((gates, wide.clone()), 1.0, h, u.clone(), (n, 4 * dim, dim))?;
                let next = rows.place(step + 1, dim);
                let both = place.start..next.end;
                device.lstm_step(
                    (gates, wide),
                    ((hidden, place.clone()), (tanh_cell, place)),
                    ((previous, next), (cells, both)),
                    (weights, self.bias.clone()),
                    rows.fresh(step + 1),
                    (n, dim),
                )?;
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
        let Scratch { later, later_cell, .. } = scratch;
        device.reserve(later, n * dim)?;
        device.reserve(later_cell, n * dim)?;
        let Lstm { gates, cells, tanh_cell, dropped, recurrent, recordings, .. } = &mut *self;
        let u = match dropout.rate > 0.0 {
            true => (&*dropped, 0..recurrent.len(), No),
            false => (&learned.weights, recurrent.clone(), No),
        };
        worker.start(recordings, rows.n_steps, || {
            for step in (0..rows.n_steps).rev() {
                let (place, wide) = (rows.place(step, dim), rows.place(step, 4 * dim));
                let cells = ((&*cells, place.clone()), (&*tanh_cell, place.clone()));
                let later_of = (&*later, &mut *later_cell, step + 1 < rows.n_steps);
                let fresh = rows.fresh(step + 1);
                let d_out = (d_hidden, place);
                let own = (&mut *gates, wide.clone());
                device.lstm_backward(own, d_out, later_of, cells, fresh, (n, dim))?;
                let delta = (&*gates, wide, No);
                worker.multiply((later, 0..n * dim), 0.0, delta, u.clone(), (n, dim, 4 * dim))?;
            }
            Ok(())
        })?;
        let Weights { weights, gradient } = learned;
        let delta = |transposed| (&self.gates, 0..4 * all * dim, transposed);
        let previous = (&self.previous, 0..all * dim, No);
        let out = (&mut *gradient, self.recurrent.clone());
        worker.multiply(out, 0.0, delta(Yes), previous, (4 * dim, dim, all))?;
        if dropout.rate > 0.0 {
            device.dropout_in_place((&mut *gradient, self.recurrent.clone()), dropout)?;
        }
        let (out, x) = ((&mut *gradient, self.input.clone()), (x, 0..all * n_in, No));
        worker.multiply(out, 1.0, delta(Yes), x, (4 * dim, n_in, all))?;
        let bias = (gradient, self.bias.clone());
        device.add_column_sums(bias, &self.gates, all, Columns::all(4 * dim))?;
        let w = (&*weights, self.input.clone(), No);
        worker.multiply((d_x, 0..all * n_in), 0.0, delta(No), w, (all, n_in, 4 * dim))
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
    device.keep_rows((previous, place.clone()), (state, place), rows.fresh(0), (n, dim))
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
    device.keep_rows(state, (previous, last), fresh, (rows.n_streams, dim))
}
