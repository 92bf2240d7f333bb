//! 16-bit number formats.

use crate::blas::Factor;
use crate::device::{Array, CudaError, Device, at_least, for_each, kernels};
use half::{bf16, f16};
use std::ops::Range;

/// Element type of derivatives inside networks, and of the factors that they are multiplied with: `f32` or [`bf16`].
///
/// The activations that they belong to are of type `f32` or [`f16`](struct@f16), respectively: half precision has more
/// significant bits, and bf16 the range that small derivatives need.
pub trait Derivative: Factor + sealed::Kernels {
    /// The values of a range in this type, converted into `room` if they are of another type.
    fn factor<'a>(
        device: &Device,
        values: (&'a Array<f32>, Range<usize>),
        room: &'a mut Array<Self>,
    ) -> Result<(&'a Array<Self>, Range<usize>), CudaError>;

    /// The values of a range in the type of activations, converted into `room` if they are of another type.
    fn activation<'a>(
        device: &Device,
        values: (&'a Array<f32>, Range<usize>),
        room: &'a mut Array<Self::Activation>,
    ) -> Result<(&'a Array<Self::Activation>, Range<usize>), CudaError>;

    /// x ─▶ D(ReLU(x + bias)) for n rows of the first of `values`, as [`Device::bias_relu`]. If activations are of another
    /// type than derivatives, the second becomes the result in the type of derivatives, as a factor.
    fn bias_relu(
        device: &Device,
        values: (&mut Array<Self::Activation>, &mut Array<Self>),
        bias: (&Array<f32>, Range<usize>),
        n: usize,
        dropout: (f32, u64),
    ) -> Result<(), CudaError>;

    /// The result of [`Derivative::bias_relu`] as a factor of derivatives.
    fn factor_of<'a>(
        activations: &'a Array<Self::Activation>,
        room: &'a Array<Self>,
    ) -> &'a Array<Self>;

    /// The array of the type of activations, out of two arrays with the same numbers.
    fn either_activation<'a>(
        single: &'a Array<f32>,
        half: &'a Array<f16>,
    ) -> &'a Array<Self::Activation>;

    /// The array of this type, out of two arrays with the same numbers.
    fn either<'a>(single: &'a Array<f32>, bf16: &'a Array<bf16>) -> &'a Array<Self>;
}

impl Derivative for f32 {
    fn factor<'a>(
        _: &Device,
        values: (&'a Array<f32>, Range<usize>),
        _: &'a mut Array<f32>,
    ) -> Result<(&'a Array<f32>, Range<usize>), CudaError> {
        Ok(values)
    }

    fn activation<'a>(
        _: &Device,
        values: (&'a Array<f32>, Range<usize>),
        _: &'a mut Array<f32>,
    ) -> Result<(&'a Array<f32>, Range<usize>), CudaError> {
        Ok(values)
    }

    fn bias_relu(
        device: &Device,
        (x, _): (&mut Array<f32>, &mut Array<f32>),
        bias: (&Array<f32>, Range<usize>),
        n: usize,
        dropout: (f32, u64),
    ) -> Result<(), CudaError> {
        device.bias_relu(x, bias, n, dropout)
    }

    fn either_activation<'a>(single: &'a Array<f32>, _: &'a Array<f16>) -> &'a Array<f32> {
        single
    }

    fn either<'a>(single: &'a Array<f32>, _: &'a Array<bf16>) -> &'a Array<f32> {
        single
    }

    fn factor_of<'a>(activations: &'a Array<f32>, _: &'a Array<f32>) -> &'a Array<f32> {
        activations
    }
}

impl Derivative for bf16 {
    fn factor<'a>(
        device: &Device,
        values: (&'a Array<f32>, Range<usize>),
        room: &'a mut Array<bf16>,
    ) -> Result<(&'a Array<bf16>, Range<usize>), CudaError> {
        let n = values.1.len();
        device.reserve(room, n)?;
        device.to_bf16(room, values)?;
        Ok((room, 0..n))
    }

    fn activation<'a>(
        device: &Device,
        values: (&'a Array<f32>, Range<usize>),
        room: &'a mut Array<f16>,
    ) -> Result<(&'a Array<f16>, Range<usize>), CudaError> {
        let n = values.1.len();
        device.reserve(room, n)?;
        device.to_half(room, values)?;
        Ok((room, 0..n))
    }

    fn bias_relu(
        device: &Device,
        (x, room): (&mut Array<f16>, &mut Array<bf16>),
        bias: (&Array<f32>, Range<usize>),
        n: usize,
        dropout: (f32, u64),
    ) -> Result<(), CudaError> {
        device.reserve(room, x.len())?;
        device.bias_relu_half((x, room), bias, n, dropout)
    }

    fn either_activation<'a>(_: &'a Array<f32>, half: &'a Array<f16>) -> &'a Array<f16> {
        half
    }

    fn either<'a>(_: &'a Array<f32>, bf16: &'a Array<bf16>) -> &'a Array<bf16> {
        bf16
    }

    fn factor_of<'a>(_: &'a Array<f16>, room: &'a Array<bf16>) -> &'a Array<bf16> {
        room
    }
}

pub(super) mod sealed {
    use crate::blas::Factor;
    use crate::device::{CudaError, Device, Element, View, ViewMut, kernels};
    use cudarc::driver::LaunchConfig;
    use half::{bf16, f16};

    type Launched = Result<(), CudaError>;
    type In<'a, T> = View<'a, T>;
    type Out<'a, T> = ViewMut<'a, T>;

    /// The kernel [`kernels::relu_backward`] for derivatives of type `T`.
    type ReluBackward<T> = fn(
        &Device,
        LaunchConfig,
        Out<'_, T>,
        Out<'_, f32>,
        In<'_, T>,
        In<'_, f32>,
        i32,
        i32,
        f32,
    ) -> Launched;

    /// The kernel [`kernels::norm_of_sum`] for activations of type `A`.
    type NormOfSum<A> = fn(
        &Device,
        LaunchConfig,
        Out<'_, f32>,
        Out<'_, A>,
        Out<'_, f32>,
        Out<'_, u32>,
        In<'_, A>,
        In<'_, A>,
        In<'_, f32>,
        In<'_, f32>,
        In<'_, f32>,
        i32,
        i32,
        f32,
        u64,
    ) -> Launched;

    /// The kernel [`kernels::norm_backward`] for derivatives of type `T` and activations of type `A`.
    type NormBackward<T, A> = fn(
        &Device,
        LaunchConfig,
        Out<'_, f32>,
        Out<'_, T>,
        Out<'_, f32>,
        In<'_, f32>,
        In<'_, A>,
        In<'_, f32>,
        In<'_, u32>,
        In<'_, f32>,
        i32,
        i32,
        f32,
    ) -> Launched;

    /// The kernels for derivatives of a type.
    pub trait Kernels: Element {
        /// Element type of activations.
        type Activation: Factor;

        const RELU_BACKWARD: ReluBackward<Self>;
        const NORM_OF_SUM: NormOfSum<Self::Activation>;
        const NORM_BACKWARD: NormBackward<Self, Self::Activation>;
    }

    impl Kernels for f32 {
        type Activation = f32;

        const RELU_BACKWARD: ReluBackward<f32> = kernels::relu_backward;
        const NORM_OF_SUM: NormOfSum<f32> = kernels::norm_of_sum;
        const NORM_BACKWARD: NormBackward<f32, f32> = kernels::norm_backward;
    }

    impl Kernels for bf16 {
        type Activation = f16;

        const RELU_BACKWARD: ReluBackward<bf16> = kernels::relu_backward_bf16;
        const NORM_OF_SUM: NormOfSum<f16> = kernels::norm_of_sum_half;
        const NORM_BACKWARD: NormBackward<bf16, f16> = kernels::norm_backward_bf16;
    }
}

impl Device {
    /// Rounds the numbers of a range to half precision.
    pub fn to_half(
        &self,
        out: &mut Array<f16>,
        (x, range): (&Array<f32>, Range<usize>),
    ) -> Result<(), CudaError> {
        let n = range.len();
        at_least("out", out.len(), n);
        kernels::to_half(self, for_each(n / 4), out.all_mut(), x.at(range), n as i64)
    }

    /// Rounds the numbers of a range to bf16.
    pub fn to_bf16(
        &self,
        out: &mut Array<bf16>,
        (x, range): (&Array<f32>, Range<usize>),
    ) -> Result<(), CudaError> {
        let n = range.len();
        at_least("out", out.len(), n);
        kernels::to_bf16(self, for_each(n / 4), out.all_mut(), x.at(range), n as i64)
    }

    /// Rounds the numbers of a range to both formats.
    pub fn to_half_and_bf16(
        &self,
        (half, bf16): (&mut Array<f16>, &mut Array<bf16>),
        (x, range): (&Array<f32>, Range<usize>),
    ) -> Result<(), CudaError> {
        let n = range.len();
        at_least("half", half.len(), n);
        at_least("bf16", bf16.len(), n);
        let (config, half, bf16) = (for_each(n / 4), half.all_mut(), bf16.all_mut());
        kernels::to_half_and_bf16(self, config, half, bf16, x.at(range), n as i64)
    }
}
