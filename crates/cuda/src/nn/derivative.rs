//! What derivatives inside networks are made of.

use crate::{Array, CudaError, Device};
use cudarc::cublas::sys;
use cudarc::driver::{DeviceRepr, ValidAsZeroBits};
use std::ops::Range;

/// A number that derivatives inside networks are made of, and the factors of the products they are in: of single
/// precision, or bf16.
pub trait Derivative: DeviceRepr + ValidAsZeroBits + Sized {
    /// The kernels that write such derivatives.
    #[doc(hidden)]
    const RELU_BACKWARD: &'static str;
    #[doc(hidden)]
    const NORM_BACKWARD: &'static str;
    /// What cuBLAS calls them.
    #[doc(hidden)]
    const KIND: sys::cudaDataType_t;

    /// Some numbers of single precision as such numbers; `room` is for those that are not the same.
    fn factor<'a>(
        device: &Device,
        values: (&'a Array<f32>, Range<usize>),
        room: &'a mut Array<Self>,
    ) -> Result<(&'a Array<Self>, Range<usize>), CudaError>;

    /// Of the same numbers in both kinds, such ones.
    fn either<'a>(single: &'a Array<f32>, bf16: &'a Array<u16>) -> &'a Array<Self>;
}

impl Derivative for f32 {
    const RELU_BACKWARD: &'static str = "relu_backward";
    const NORM_BACKWARD: &'static str = "norm_backward";
    const KIND: sys::cudaDataType_t = sys::cudaDataType_t::CUDA_R_32F;

    fn factor<'a>(
        _: &Device,
        values: (&'a Array<f32>, Range<usize>),
        _: &'a mut Array<f32>,
    ) -> Result<(&'a Array<f32>, Range<usize>), CudaError> {
        Ok(values)
    }

    fn either<'a>(single: &'a Array<f32>, _: &'a Array<u16>) -> &'a Array<f32> {
        single
    }
}

impl Derivative for u16 {
    const RELU_BACKWARD: &'static str = "relu_backward_bf16";
    const NORM_BACKWARD: &'static str = "norm_backward_bf16";
    const KIND: sys::cudaDataType_t = sys::cudaDataType_t::CUDA_R_16BF;

    fn factor<'a>(
        device: &Device,
        values: (&'a Array<f32>, Range<usize>),
        room: &'a mut Array<u16>,
    ) -> Result<(&'a Array<u16>, Range<usize>), CudaError> {
        let n = values.1.len();
        device.reserve(room, n)?;
        device.to_bf16(room, values)?;
        Ok((room, 0..n))
    }

    fn either<'a>(_: &'a Array<f32>, bf16: &'a Array<u16>) -> &'a Array<u16> {
        bf16
    }
}
