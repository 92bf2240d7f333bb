//! The residual layer on the device; see `latens_nn::Residual`.

use crate::cuda::context::{Weights, range};
use latens_cuda::{Array, CudaError, Derivative, Device, NormWeights, Precision, Transposed};
use latens_nn::Layout;
use std::ops::Range;

/// A residual layer with the activations of its last forward pass.
#[derive(Debug)]
pub(crate) struct Residual {
    inner: (Range<usize>, Range<usize>),
    outer: Range<usize>,
    /// The weights of the normalization and the bias of the outer layer.
    norm: NormWeights,
    n_in: usize,
    dim: usize,
    /// The dropout rate of the last forward pass.
    rate: f32,
    inner_out: Array<f32>,
    outer_out: Array<f32>,
    normalized: Array<f32>,
    inverse_deviation: Array<f32>,
    pub(crate) out: Array<f32>,
    pub(crate) d_out: Array<f32>,
}

/// Buffers that all layers share in their backward passes. Factors of products have type `T`.
#[derive(Debug)]
pub(crate) struct Scratch<T: Derivative> {
    d_sum: Array<f32>,
    /// With respect to the input of a ReLU.
    d_z: Array<T>,
    /// For factors that are converted to `T`.
    input: Array<T>,
    weight: Array<T>,
    partial: Array<f32>,
}

impl<T: Derivative> Scratch<T> {
    pub(crate) fn new(device: &Device, n_rows: usize, dim: usize) -> Result<Scratch<T>, CudaError> {
        Ok(Scratch {
            d_sum: device.zeros(n_rows * dim)?,
            d_z: device.zeros(n_rows * dim)?,
            input: device.zeros(1)?,
            weight: device.zeros(1)?,
            partial: device.zeros(1)?,
        })
    }
}

/// The destination of derivatives and the factor of its old contents: 1 to add to them, 0 to overwrite them.
pub(crate) type Scaled<'a> = (&'a mut Array<f32>, f32);

impl Residual {
    /// The layer with the weights `name.…`, for at most `n_rows` rows.
    pub(crate) fn new(
        device: &Device,
        layout: &Layout,
        name: &str,
        n_rows: usize,
    ) -> Result<Residual, CudaError> {
        let weight = |part: &str| range(layout, &format!("{name}.{part}"));
        let [bias, gain, offset] = ["outer.bias", "norm.gain", "norm.offset"].map(weight);
        assert!(
            bias.end == gain.start && gain.end == offset.start,
            "the weights of the normalization are adjacent in the layout"
        );
        let (dim, inner) = (offset.len(), weight("inner.weight"));
        let zeros = || device.zeros(n_rows * dim);
        Ok(Residual {
            n_in: inner.len() / dim,
            inner: (inner, weight("inner.bias")),
            outer: weight("outer.weight"),
            norm: NormWeights::new(bias.start..offset.end),
            dim,
            rate: 0.0,
            inner_out: zeros()?,
            outer_out: zeros()?,
            normalized: zeros()?,
            inverse_deviation: device.zeros(n_rows)?,
            out: zeros()?,
            d_out: zeros()?,
        })
    }

    /// Computes f for n rows of `x`, with dropout at a rate and with a seed.
    pub(crate) fn forward(
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

        let out = (&mut self.outer_out, 0..n * dim);
        let (d, w) = ((&self.inner_out, 0..n * dim, No), (weights, self.outer.clone(), Yes));
        device.multiply(out, 0.0, d, w, (n, dim, dim), precision)?;
        device.norm_of_sum(
            &mut self.out,
            (&mut self.normalized, &mut self.inverse_deviation),
            (&self.inner_out, &mut self.outer_out),
            (weights, &self.norm),
            n,
            (rate, seed ^ 0x5bf0_3635_dcf9_8d2b),
        )
    }

    /// Backpropagates `d_out` to the gradient of the weights and to `d_x`.
    pub(crate) fn backward<T: Derivative>(
        &mut self,
        device: &Device,
        learned: &mut Weights,
        x: &Array<T>,
        d_x: Scaled<'_>,
        n: usize,
        scratch: &mut Scratch<T>,
    ) -> Result<(), CudaError> {
        let Residual { n_in, dim, .. } = *self;
        let scale = 1.0 / (1.0 - self.rate);
        let Scratch { d_sum, d_z, input, weight, partial } = scratch;
        device.norm_backward(
            (d_sum, d_z),
            &self.d_out,
            (&self.normalized, &self.inverse_deviation, &self.outer_out),
            (&learned.weights, &mut learned.gradient, &self.norm),
            (n, scale),
            partial,
        )?;
        let (input, _) = T::factor(device, (&self.inner_out, 0..n * dim), input)?;
        let layer = Linear { weight: self.outer.clone(), n_in: dim, dim };
        layer.backward(device, learned, (input, d_z), (d_sum, 1.0), n, weight)?;

        let (inner, bias) = self.inner.clone();
        let values = (&self.inner_out, &*d_sum);
        device.relu_backward(d_z, values, n, scale, (&mut learned.gradient, bias), partial)?;
        let layer = Linear { weight: inner, n_in, dim };
        layer.backward(device, learned, (x, d_z), d_x, n, weight)
    }
}

/// The product z = W x with a range of the weights.
struct Linear {
    weight: Range<usize>,
    n_in: usize,
    dim: usize,
}

impl Linear {
    /// Adds ∂W = ∂zᵀ x to the gradient and ∂x = ∂z W to `d_x`, for n rows. `weight` is scratch.
    fn backward<T: Derivative>(
        &self,
        device: &Device,
        learned: &mut Weights,
        (x, d_z): (&Array<T>, &Array<T>),
        (d_x, scale): Scaled<'_>,
        n: usize,
        weight: &mut Array<T>,
    ) -> Result<(), CudaError> {
        use Transposed::{No, Yes};
        let (n_in, dim, all) = (self.n_in, self.dim, 0..n * self.dim);
        let Weights { weights, gradient } = learned;
        let out = (gradient, self.weight.clone());
        let factors = ((d_z, all.clone(), Yes), (x, 0..n * n_in, No));
        device.multiply_as(out, 1.0, factors.0, factors.1, (dim, n_in, n))?;
        let (w, at) = T::factor(device, (weights, self.weight.clone()), weight)?;
        let out = (d_x, 0..n * n_in);
        device.multiply_as(out, scale, (d_z, all, No), (w, at, No), (n, n_in, dim))
    }
}
