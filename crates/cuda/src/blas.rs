//! Products of matrices.

use crate::device::failed_with;
use crate::{Array, CudaError, Derivative, Device};
use cudarc::cublas::{result, sys};
use cudarc::driver::{DevicePtr, DevicePtrMut};
use std::ops::Range;

/// How a matrix in memory enters a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transposed {
    /// As it is.
    No,
    /// Transposed.
    Yes,
}

/// How exactly products are computed; sums are always of single precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// In single precision.
    Full,
    /// With factors of 11 significant bits (TF32, half precision), or of 8 (bf16) where one is a [`Derivative`].
    Fast,
}

/// A factor: an array, where it begins, and how it enters.
type Factor<'a, T> = (&'a Array<T>, Range<usize>, Transposed);

impl Device {
    /// out = scale · out + A B, where out is n × m and A is n × k.
    ///
    /// # Panics
    /// If an array is too short.
    pub fn multiply(
        &self,
        out: (&mut Array<f32>, Range<usize>),
        scale: f32,
        a: Factor<'_, f32>,
        b: Factor<'_, f32>,
        (n, m, k): (usize, usize, usize),
        precision: Precision,
    ) -> Result<(), CudaError> {
        let compute = match precision {
            Precision::Full => sys::cublasComputeType_t::CUBLAS_COMPUTE_32F,
            Precision::Fast => sys::cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32,
        };
        let kind = sys::cudaDataType_t::CUDA_R_32F;
        self.product(out, scale, a, b, (n, m, k), (kind, kind, compute))
    }

    /// The same with factors of a kind that derivatives are made of, taken as they are.
    ///
    /// # Panics
    /// If an array is too short.
    pub fn multiply_as<T: Derivative>(
        &self,
        out: (&mut Array<f32>, Range<usize>),
        scale: f32,
        a: Factor<'_, T>,
        b: Factor<'_, T>,
        sizes: (usize, usize, usize),
    ) -> Result<(), CudaError> {
        let kinds = (T::KIND, f32::KIND, sys::cublasComputeType_t::CUBLAS_COMPUTE_32F);
        self.product(out, scale, a, b, sizes, kinds)
    }

    /// out = A B, all of half precision; sums are of single precision.
    ///
    /// # Panics
    /// If an array is too short.
    pub fn multiply_half(
        &self,
        out: (&mut Array<u16>, Range<usize>),
        a: Factor<'_, u16>,
        b: Factor<'_, u16>,
        sizes: (usize, usize, usize),
    ) -> Result<(), CudaError> {
        let kind = sys::cudaDataType_t::CUDA_R_16F;
        let compute = sys::cublasComputeType_t::CUBLAS_COMPUTE_32F;
        self.product(out, 0.0, a, b, sizes, (kind, kind, compute))
    }

    /// cuBLAS has columns where we have rows, so it is asked for outᵀ = Bᵀ Aᵀ.
    fn product<T, Out>(
        &self,
        out: (&mut Array<Out>, Range<usize>),
        scale: f32,
        a: Factor<'_, T>,
        b: Factor<'_, T>,
        (n, m, k): (usize, usize, usize),
        (kind, kind_out, compute): (
            sys::cudaDataType_t,
            sys::cudaDataType_t,
            sys::cublasComputeType_t,
        ),
    ) -> Result<(), CudaError> {
        if n == 0 || m == 0 {
            return Ok(());
        }
        assert!(out.1.len() >= n * m && a.1.len() >= n * k && b.1.len() >= k * m, "whole matrices");
        let (op_a, stride_a) = operation(a.2, k, n);
        let (op_b, stride_b) = operation(b.2, m, k);
        let (a, b) = (a.0.at(a.1), b.0.at(b.1));
        let mut out = out.0.at_mut(out.1);
        let (a, _a) = a.device_ptr(&self.stream);
        let (b, _b) = b.device_ptr(&self.stream);
        let (out, _out) = out.device_ptr_mut(&self.stream);
        let one = 1.0f32;
        // SAFETY: the pointers are those of arrays on this device with room for the matrices, as was just checked.
        unsafe {
            result::gemm_ex(
                *self.blas.handle(),
                op_b,
                op_a,
                m as i32,
                n as i32,
                k as i32,
                (&raw const one).cast(),
                b as *const _,
                kind,
                stride_b,
                a as *const _,
                kind,
                stride_a,
                (&raw const scale).cast(),
                out as *mut _,
                kind_out,
                m as i32,
                compute,
                sys::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
            )
        }
        .map_err(|error| failed_with("multiply matrices", format!("{error:?}")))
    }
}

/// The operation, and the length of a row in memory.
fn operation(
    transposed: Transposed,
    n_cols: usize,
    n_rows: usize,
) -> (sys::cublasOperation_t, i32) {
    match transposed {
        Transposed::No => (sys::cublasOperation_t::CUBLAS_OP_N, n_cols as i32),
        Transposed::Yes => (sys::cublasOperation_t::CUBLAS_OP_T, n_rows as i32),
    }
}
