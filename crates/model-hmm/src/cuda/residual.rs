//! The residual layer on the device; see `latens_nn::Residual` for what it computes.

use super::Weights;
use latens_cuda::{Array, CudaError, Device, Precision, Transposed};
use latens_nn::Layout;
use std::ops::Range;

/// A layer with what its forward pass leaves for the backward pass.
#[derive(Debug)]
pub(super) struct Residual {
    inner: (Range<usize>, Range<usize>),
    outer: (Range<usize>, Range<usize>),
    gain: Range<usize>,
    offset: Range<usize>,
    n_in: usize,
    dim: usize,
    /// The rate of dropout of the last forward pass.
    rate: f32,
    inner_out: Array<f32>,
    outer_out: Array<f32>,
    normalised: Array<f32>,
    inverse_deviation: Array<f32>,
    pub(super) out: Array<f32>,
    pub(super) d_out: Array<f32>,
}

/// Memory that all layers share in their backward passes.
#[derive(Debug)]
pub(super) struct Scratch {
    d_sum: Array<f32>,
    d_outer: Array<f32>,
    pub(super) partial: Array<f32>,
}

impl Scratch {
    pub(super) fn new(device: &Device, n_rows: usize, dim: usize) -> Result<Scratch, CudaError> {
        let zeros = || device.zeros(n_rows * dim);
        Ok(Scratch { d_sum: zeros()?, d_outer: zeros()?, partial: device.zeros(1)? })
    }
}

impl Residual {
    /// The layer whose weights are named `name.…`, with room for `n_rows` rows.
    pub(super) fn new(
        device: &Device,
        layout: &Layout,
        name: &str,
        n_rows: usize,
    ) -> Result<Residual, CudaError> {
        let weight = |part: &str| super::range(layout, &format!("{name}.{part}"));
        let (offset, inner) = (weight("norm.offset"), weight("inner.weight"));
        let dim = offset.len();
        let zeros = || device.zeros(n_rows * dim);
        Ok(Residual {
            n_in: inner.len() / dim,
            inner: (inner, weight("inner.bias")),
            outer: (weight("outer.weight"), weight("outer.bias")),
            gain: weight("norm.gain"),
            offset,
            dim,
            rate: 0.0,
            inner_out: zeros()?,
            outer_out: zeros()?,
            normalised: zeros()?,
            inverse_deviation: device.zeros(n_rows)?,
            out: zeros()?,
            d_out: zeros()?,
        })
    }

    /// f of n rows of `x`; numbers are dropped with a probability and by a seed.
    pub(super) fn forward(
        &mut self,
        device: &Device,
        weights: &Array<f32>,
        x: &Array<f32>,
        n: usize,
        (rate, seed): (f32, u64),
        precision: Precision,
    ) -> Result<(), CudaError> {
        use Transposed::{No, Yes};
        let Residual { n_in, dim, .. } = *self;
        self.rate = rate;
        let (weight, bias) = self.inner.clone();
        let out = (&mut self.inner_out, 0..n * dim);
        let (x, w) = ((x, 0..n * n_in, No), (weights, weight, Yes));
        device.multiply(out, 0.0, x, w, (n, dim, n_in), precision)?;
        device.bias_relu(&mut self.inner_out, (weights, bias), n, (rate, seed))?;

        let (weight, bias) = self.outer.clone();
        let out = (&mut self.outer_out, 0..n * dim);
        let (d, w) = ((&self.inner_out, 0..n * dim, No), (weights, weight, Yes));
        device.multiply(out, 0.0, d, w, (n, dim, dim), precision)?;
        let seed = seed ^ 0x5bf0_3635_dcf9_8d2b;
        device.bias_relu(&mut self.outer_out, (weights, bias), n, (rate, seed))?;

        device.norm_of_sum(
            &mut self.out,
            (&mut self.normalised, &mut self.inverse_deviation),
            (&self.inner_out, &self.outer_out),
            (weights, self.gain.clone(), self.offset.clone()),
            n,
        )
    }

    /// Adds the derivatives of weights, and those of `x` to `d_x`, given `d_out`.
    #[expect(clippy::too_many_arguments, reason = "a layer, its input and output, and gradients")]
    pub(super) fn backward(
        &mut self,
        device: &Device,
        learned: &mut Weights,
        x: &Array<f32>,
        d_x: &mut Array<f32>,
        n: usize,
        scratch: &mut Scratch,
        precision: Precision,
    ) -> Result<(), CudaError> {
        use Transposed::{No, Yes};
        let Residual { n_in, dim, .. } = *self;
        let (all, scale) = (0..n * dim, 1.0 / (1.0 - self.rate));
        let Scratch { d_sum, d_outer, partial } = scratch;
        let Weights { weights, gradient } = learned;
        device.norm_backward(
            d_sum,
            &self.d_out,
            (&self.normalised, &self.inverse_deviation),
            (weights, gradient, self.gain.clone(), self.offset.clone()),
            n,
            partial,
        )?;

        let (weight, bias) = self.outer.clone();
        let values = (&self.outer_out, &*d_sum);
        device.relu_backward(d_outer, values, n, scale, (gradient, bias), partial)?;
        let factors = ((&*d_outer, all.clone(), Yes), (&self.inner_out, all.clone(), No));
        let out = (&mut *gradient, weight.clone());
        device.multiply(out, 1.0, factors.0, factors.1, (dim, dim, n), precision)?;
        let factors = ((&*d_outer, all.clone(), No), (&*weights, weight, No));
        let out = (&mut *d_sum, all.clone());
        device.multiply(out, 1.0, factors.0, factors.1, (n, dim, dim), precision)?;

        let (weight, bias) = self.inner.clone();
        let values = (&self.inner_out, &*d_sum);
        device.relu_backward(d_outer, values, n, scale, (gradient, bias), partial)?;
        let factors = ((&*d_outer, all.clone(), Yes), (x, 0..n * n_in, No));
        let out = (&mut *gradient, weight.clone());
        device.multiply(out, 1.0, factors.0, factors.1, (dim, n_in, n), precision)?;
        let factors = ((&*d_outer, all, No), (&*weights, weight, No));
        device.multiply((d_x, 0..n * n_in), 1.0, factors.0, factors.1, (n, n_in, dim), precision)
    }
}
