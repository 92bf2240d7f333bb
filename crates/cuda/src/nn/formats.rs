//! 16-bit number formats.

use crate::blas::Factor;
use crate::device::{Array, CudaError, Device, at_least, for_each, kernels};
use half::{bf16, f16};
use std::ops::Range;

/// Element type of derivatives inside networks, and of the factors that they are multiplied with: `f32` or [`bf16`].
pub trait Derivative: Factor + sealed::Kernels {
    /// The values of a range in this type, converted into `room` if they are of another type.
    fn factor<'a>(
        device: &Device,
        values: (&'a Array<f32>, Range<usize>),
        room: &'a mut Array<Self>,
    ) -> Result<(&'a Array<Self>, Range<usize>), CudaError>;

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

    fn either<'a>(single: &'a Array<f32>, _: &'a Array<bf16>) -> &'a Array<f32> {
        single
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

    fn either<'a>(_: &'a Array<f32>, bf16: &'a Array<bf16>) -> &'a Array<bf16> {
        bf16
    }
}

pub(super) mod sealed {
    use crate::device::{CudaError, Device, Element, View, ViewMut, kernels};
    use cudarc::driver::LaunchConfig;
    use half::bf16;

    type Launched = Result<(), CudaError>;
    type In<'a> = View<'a, f32>;
    type Out<'a, T> = ViewMut<'a, T>;

    /// The kernel [`kernels::relu_backward`] for derivatives of type `T`.
    type ReluBackward<T> = fn(
        &Device,
        LaunchConfig,
        Out<'_, T>,
        Out<'_, f32>,
        In<'_>,
        In<'_>,
        i32,
        i32,
        f32,
    ) -> Launched;

    /// The kernel [`kernels::norm_backward`] for derivatives of type `T`.
    type NormBackward<T> = fn(
        &Device,
        LaunchConfig,
        Out<'_, f32>,
        Out<'_, T>,
        Out<'_, f32>,
        In<'_>,
        In<'_>,
        In<'_>,
        In<'_>,
        In<'_>,
        i32,
        i32,
        f32,
    ) -> Launched;

    /// The kernels that write derivatives of a type.
    pub trait Kernels: Element {
        const RELU_BACKWARD: ReluBackward<Self>;
        const NORM_BACKWARD: NormBackward<Self>;
    }

    impl Kernels for f32 {
        const RELU_BACKWARD: ReluBackward<f32> = kernels::relu_backward;
        const NORM_BACKWARD: NormBackward<f32> = kernels::norm_backward;
    }

    impl Kernels for bf16 {
        const RELU_BACKWARD: ReluBackward<bf16> = kernels::relu_backward_bf16;
        const NORM_BACKWARD: NormBackward<bf16> = kernels::norm_backward_bf16;
    }
}

impl Device {
    /// Rounds the first n numbers to half precision.
    pub fn to_half(&self, out: &mut Array<f16>, x: &Array<f32>, n: usize) -> Result<(), CudaError> {
        at_least("out", out.len(), n);
        at_least("x", x.len(), n);
        kernels::to_half(self, for_each(n / 4), out.all_mut(), x.all(), n as i64)
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
}
