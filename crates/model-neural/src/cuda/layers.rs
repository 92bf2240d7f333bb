//! Layers on the device; see `latens_nn` for their definitions.

use Transposed::{No, Yes};
use latens_cuda::{
    Array, CudaError, Device, Dropout, Fresh, Precision, ProductShape, Recordings, Transposed,
};
use latens_nn::Linear;
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
    pub(super) fn place(&self, step: usize, dim: usize) -> Range<usize> {
        step * self.n_streams * dim..(step + 1) * self.n_streams * dim
    }

    /// The range of a time step and the next, if there is one, in rows of length `dim`.
    pub(super) fn with_next(&self, step: usize, dim: usize) -> Range<usize> {
        self.place(step, dim).start..self.place((step + 1).min(self.n_steps - 1), dim).end
    }

    /// The reset flags of a time step; none after the last step.
    pub(super) fn fresh(&self, step: usize) -> Fresh<'_> {
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
        shape: ProductShape,
    ) -> Result<(), CudaError> {
        self.device.multiply(out, scale, a, b, shape, self.precision)
    }

    /// Starts the time steps of a layer, all at once if there are many.
    pub(super) fn start(
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
    /// Recurrent weights, transposed.
    pub(super) transposed: Array<f32>,
    /// Derivatives that go to the previous time step.
    pub(super) later: Array<f32>,
    pub(super) later_cell: Array<f32>,
    partial: Array<f32>,
}

impl Scratch {
    pub(super) fn new(device: &Device) -> Result<Scratch, CudaError> {
        let one = || device.zeros(1);
        Ok(Scratch { transposed: one()?, later: one()?, later_cell: one()?, partial: one()? })
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
        let shape = ProductShape { n, m: dim, k: n_in };
        worker.multiply((&mut self.out, 0..n * dim), 0.0, x, w, shape)?;
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
        let shape = ProductShape { n: dim, m: n_in, k: n };
        worker.multiply(out, 1.0, d_z(Yes), (x, 0..n * n_in, No), shape)?;
        let w = (&*weights, self.weight.clone(), No);
        worker.multiply((d_x, 0..n * n_in), 0.0, d_z(No), w, ProductShape { n, m: n_in, k: dim })
    }
}
