//! The residual layer on the device; see `latens_nn::Residual`.

use crate::cuda::context::{Weights, range};
use latens_cuda::{
    Array, CudaError, Derivative, Device, NormKept, NormWeights, ProductShape, Transposed, bf16,
    f16,
};
use latens_nn::Layout;
use std::ops::Range;

/// A residual layer with the activations of its last forward pass, for derivatives of type `T`.
#[derive(Debug)]
pub(crate) struct Residual<T: Derivative> {
    inner: (Range<usize>, Range<usize>),
    outer: Range<usize>,
    /// The weights of the normalization and the bias of the outer layer.
    norm: NormWeights,
    n_in: usize,
    dim: usize,
    /// The dropout rate of the last forward pass.
    rate: f32,
    /// Both matrices in the type of activations, if it is another one.
    matrices: Array<T::Activation>,
    inner_out: Array<T::Activation>,
    /// `inner_out` in the type of derivatives, if it is another one.
    inner_factor: Array<T>,
    outer_out: Array<T::Activation>,
    kept: NormKept<T>,
}

/// Buffers that all layers share in their backward passes. Factors of products have type `T`.
#[derive(Debug)]
pub(crate) struct Scratch<T: Derivative> {
    d_sum: Array<f32>,
    /// With respect to the input of a ReLU.
    d_z: Array<T>,
    /// For matrices of weights that are converted to `T`.
    matrices: Array<T>,
    partial: Array<f32>,
}

impl<T: Derivative> Scratch<T> {
    pub(crate) fn new(device: &Device, n_rows: usize, dim: usize) -> Result<Scratch<T>, CudaError> {
        Ok(Scratch {
            d_sum: device.zeros(n_rows * dim)?,
            d_z: device.zeros(n_rows * dim)?,
            matrices: device.zeros(1)?,
            partial: device.zeros(1)?,
        })
    }
}

/// The same numbers in all formats that a precision uses: single precision in full precision, otherwise both 16-bit formats.
#[derive(Clone, Copy)]
pub(crate) struct Formats<'a> {
    pub(crate) single: &'a Array<f32>,
    pub(crate) half: &'a Array<f16>,
    pub(crate) bf16: &'a Array<bf16>,
}

/// The destination of derivatives and the factor of its old contents: 1 to add to them, 0 to overwrite them.
pub(crate) type Scaled<'a> = (&'a mut Array<f32>, f32);

impl<T: Derivative> Residual<T> {
    /// The layer with the weights `name.…`, for at most `n_rows` rows.
    pub(crate) fn new(
        device: &Device,
        layout: &Layout,
        name: &str,
        n_rows: usize,
    ) -> Result<Residual<T>, CudaError> {
        let weight = |part: &str| range(layout, &format!("{name}.{part}"));
        let [inner, inner_bias, outer] = ["inner.weight", "inner.bias", "outer.weight"].map(weight);
        let [bias, gain, offset] = ["outer.bias", "norm.gain", "norm.offset"].map(weight);
        assert!(
            bias.end == gain.start && gain.end == offset.start,
            "the weights of the normalization are adjacent in the layout"
        );
        assert!(
            inner.end == inner_bias.start && inner_bias.end == outer.start,
            "the weights of both layers are adjacent in the layout"
        );
        let dim = offset.len();
        let n = n_rows * dim;
        Ok(Residual {
            n_in: inner.len() / dim,
            inner: (inner, inner_bias),
            outer,
            norm: NormWeights::new(bias.start..offset.end),
            dim,
            rate: 0.0,
            matrices: device.zeros(1)?,
            inner_out: device.zeros(n)?,
            inner_factor: device.zeros(1)?,
            outer_out: device.zeros(n)?,
            kept: NormKept::new(device, n_rows, dim)?,
        })
    }

    /// Both matrices and the bias between them, which are converted at once.
    fn matrices(&self) -> Range<usize> {
        self.inner.0.start..self.outer.end
    }

    /// Computes f for n rows of `x`, with dropout at a rate and with a seed.
    pub(crate) fn forward(
        &mut self,
        device: &Device,
        weights: &Array<f32>,
        (x, out): (Formats<'_>, &mut Array<f32>),
        n: usize,
        (rate, seed): (f32, u64),
    ) -> Result<(), CudaError> {
        use Transposed::{No, Yes};
        let (n_in, dim, both) = (self.n_in, self.dim, self.matrices());
        self.rate = rate;
        let (inner_out, outer_out) = (&mut self.inner_out, &mut self.outer_out);
        let x = (T::either_activation(x.single, x.half), 0..n * n_in, No);
        let (w, at) = T::activation(device, (weights, both.clone()), &mut self.matrices)?;
        let matrix = |of: &Range<usize>| (w, moved(of, both.start, at.start), Yes);

        let (inner, bias) = &self.inner;
        let shape = ProductShape { n, m: dim, k: n_in };
        device.multiply_within((inner_out, 0..n * dim), x, matrix(inner), shape)?;
        let outputs = (&mut *inner_out, &mut self.inner_factor);
        T::bias_relu(device, outputs, (weights, bias.clone()), n, (rate, seed))?;
        let d = (&*inner_out, 0..n * dim, No);
        let shape = ProductShape { n, m: dim, k: dim };
        device.multiply_within((outer_out, 0..n * dim), d, matrix(&self.outer), shape)?;
        device.norm_of_sum(
            out,
            &mut self.kept,
            (inner_out, outer_out),
            (weights, &self.norm),
            n,
            (rate, seed ^ 0x5bf0_3635_dcf9_8d2b),
        )
    }

    /// Backpropagates `d_out` to the gradient of the weights and to `d_x`.
    pub(crate) fn backward(
        &mut self,
        device: &Device,
        learned: &mut Weights,
        (x, d_out): (Formats<'_>, &Array<f32>),
        d_x: Scaled<'_>,
        n: usize,
        scratch: &mut Scratch<T>,
    ) -> Result<(), CudaError> {
        let (n_in, dim, both) = (self.n_in, self.dim, self.matrices());
        let scale = 1.0 / (1.0 - self.rate);
        let Scratch { d_sum, d_z, matrices, partial } = scratch;
        let Weights { weights, gradient } = learned;
        let norm = (&*weights, &mut *gradient, &self.norm);
        device.norm_backward((d_sum, d_z), d_out, &self.kept, norm, (n, scale), partial)?;

        let inner_out = T::factor_of(&self.inner_out, &self.inner_factor);
        let (w, at) = T::factor(device, (weights, both.clone()), matrices)?;
        let matrix = |of: &Range<usize>| (w, moved(of, both.start, at.start));
        let layer = Linear { weight: self.outer.clone(), n_in: dim, dim };
        let w = matrix(&self.outer);
        layer.backward(device, gradient, (inner_out, d_z), w, (d_sum, 1.0), n)?;

        let (inner, bias) = self.inner.clone();
        let values = (inner_out, &*d_sum);
        device.relu_backward(d_z, values, n, scale, (gradient, bias), partial)?;
        let (x, w) = (T::either(x.single, x.bf16), matrix(&inner));
        Linear { weight: inner, n_in, dim }.backward(device, gradient, (x, d_z), w, d_x, n)
    }
}

/// A range of an array that was moved from one index to another.
fn moved(range: &Range<usize>, from: usize, to: usize) -> Range<usize> {
    range.start - from + to..range.end - from + to
}

/// The product z = W x with a range of the weights.
struct Linear {
    weight: Range<usize>,
    n_in: usize,
    dim: usize,
}

impl Linear {
    /// Adds ∂W = ∂zᵀ x to the gradient and ∂x = ∂z W to `d_x`, for n rows.
    fn backward<T: Derivative>(
        &self,
        device: &Device,
        gradient: &mut Array<f32>,
        (x, d_z): (&Array<T>, &Array<T>),
        (w, at): (&Array<T>, Range<usize>),
        (d_x, scale): Scaled<'_>,
        n: usize,
    ) -> Result<(), CudaError> {
        use Transposed::{No, Yes};
        let (n_in, dim, all) = (self.n_in, self.dim, 0..n * self.dim);
        let out = (gradient, self.weight.clone());
        let factors = ((d_z, all.clone(), Yes), (x, 0..n * n_in, No));
        let shape = ProductShape { n: dim, m: n_in, k: n };
        device.multiply_as(out, 1.0, factors.0, factors.1, shape)?;
        let out = (d_x, 0..n * n_in);
        let shape = ProductShape { n, m: n_in, k: dim };
        device.multiply_as(out, scale, (d_z, all, No), (w, at, No), shape)
    }
}
