//! Matrix products with cuBLAS.

use crate::device::{Array, CudaError, Device, Element, at_least, int};
use crate::shape::{ProductShape, Shape};
use cudarc::cublas::{result, sys};
use cudarc::driver::{DevicePtr, DevicePtrMut, DeviceSlice};
use half::{bf16, f16};
use std::ops::Range;

/// Whether a matrix is transposed before it enters a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transposed {
    /// As stored.
    No,
    /// Transposed.
    Yes,
}

/// Precision of the factors of products. Sums are always accumulated in single precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Single precision.
    Full,
    /// 11 significant bits (TF32 or half precision), or 8 (bf16) where a factor is a [`Derivative`](crate::Derivative).
    Fast,
}

/// Element type of a matrix that cuBLAS multiplies: `f32`, [`f16`](struct@f16) or [`bf16`].
pub trait Factor: Element + sealed::DataType {}

impl<T: Element + sealed::DataType> Factor for T {}

mod sealed {
    use cudarc::cublas::sys;

    /// The name of a type in cuBLAS.
    pub trait DataType {
        const DATA_TYPE: sys::cudaDataType_t;
    }
}

impl sealed::DataType for f32 {
    const DATA_TYPE: sys::cudaDataType_t = sys::cudaDataType_t::CUDA_R_32F;
}

impl sealed::DataType for f16 {
    const DATA_TYPE: sys::cudaDataType_t = sys::cudaDataType_t::CUDA_R_16F;
}

impl sealed::DataType for bf16 {
    const DATA_TYPE: sys::cudaDataType_t = sys::cudaDataType_t::CUDA_R_16BF;
}

/// A factor of a product: a range of an array, and whether it is transposed.
type Operand<'a, T> = (&'a Array<T>, Range<usize>, Transposed);

impl Device {
    /// out = scale · out + A B, where out is n × m and A is n × k.
    pub fn multiply(
        &self,
        out: (&mut Array<f32>, Range<usize>),
        scale: f32,
        a: Operand<'_, f32>,
        b: Operand<'_, f32>,
        shape: ProductShape,
        precision: Precision,
    ) -> Result<(), CudaError> {
        let compute = match precision {
            Precision::Full => sys::cublasComputeType_t::CUBLAS_COMPUTE_32F,
            Precision::Fast => sys::cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32,
        };
        self.product(out, scale, a, b, shape, compute)
    }

    /// The same as [`Device::multiply`] with factors of another type, without rounding them further.
    pub fn multiply_as<T: Factor>(
        &self,
        out: (&mut Array<f32>, Range<usize>),
        scale: f32,
        a: Operand<'_, T>,
        b: Operand<'_, T>,
        shape: ProductShape,
    ) -> Result<(), CudaError> {
        self.product(out, scale, a, b, shape, sys::cublasComputeType_t::CUBLAS_COMPUTE_32F)
    }

    /// out = A B in the type of the factors, where out is n × m and A is n × k.
    pub fn multiply_within<T: Factor>(
        &self,
        out: (&mut Array<T>, Range<usize>),
        a: Operand<'_, T>,
        b: Operand<'_, T>,
        shape: ProductShape,
    ) -> Result<(), CudaError> {
        self.product(out, 0.0, a, b, shape, sys::cublasComputeType_t::CUBLAS_COMPUTE_32F)
    }

    /// cuBLAS matrices are column-major, so it computes outᵀ = Bᵀ Aᵀ.
    fn product<T: Factor, Out: Factor>(
        &self,
        (out, out_range): (&mut Array<Out>, Range<usize>),
        scale: f32,
        (a, a_range, a_transposed): Operand<'_, T>,
        (b, b_range, b_transposed): Operand<'_, T>,
        ProductShape { n, m, k }: ProductShape,
        compute: sys::cublasComputeType_t,
    ) -> Result<(), CudaError> {
        if n == 0 || m == 0 {
            return Ok(());
        }
        at_least("out", out_range.len(), n * m);
        at_least("a", a_range.len(), n * k);
        at_least("b", b_range.len(), k * m);
        let (a_operation, a_stride) = operation(a_transposed, Shape { rows: n, columns: k });
        let (b_operation, b_stride) = operation(b_transposed, Shape { rows: k, columns: m });
        let (a, b, mut out) = (a.at(a_range), b.at(b_range), out.at_mut(out_range));
        for stream in [a.0.stream(), b.0.stream(), out.0.stream()] {
            self.check_owner(stream);
        }
        let (a, _a) = a.0.device_ptr(&self.stream);
        let (b, _b) = b.0.device_ptr(&self.stream);
        let (out, _out) = out.0.device_ptr_mut(&self.stream);
        let sizes = [m, n, k].map(|size| size as u64);
        let types = [T::DATA_TYPE as u64, Out::DATA_TYPE as u64, compute as u64];
        let operations = [a_operation as u64, b_operation as u64, u64::from(scale.to_bits())];
        if self.is_only_noted(|notes| {
            // No kernel has the address 0.
            notes.extend([[0, 0, 0], [a, b, out], sizes, types, operations].as_flattened());
        }) {
            return Ok(());
        }
        let one = 1.0f32;
        // SAFETY: the arrays belong to this device, and they have room for the matrices, as was just checked.
        unsafe {
            result::gemm_ex(
                *self.blas.handle(),
                b_operation,
                a_operation,
                int(m),
                int(n),
                int(k),
                (&raw const one).cast(),
                b as *const _,
                T::DATA_TYPE,
                b_stride,
                a as *const _,
                T::DATA_TYPE,
                a_stride,
                (&raw const scale).cast(),
                out as *mut _,
                Out::DATA_TYPE,
                int(m),
                compute,
                sys::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
            )
        }
        .map_err(CudaError::failed("multiply matrices"))
    }
}

/// The operation for a factor of this shape, and the length of its rows as stored.
fn operation(
    transposed: Transposed,
    Shape { rows, columns }: Shape,
) -> (sys::cublasOperation_t, i32) {
    match transposed {
        Transposed::No => (sys::cublasOperation_t::CUBLAS_OP_N, int(columns)),
        Transposed::Yes => (sys::cublasOperation_t::CUBLAS_OP_T, int(rows)),
    }
}
