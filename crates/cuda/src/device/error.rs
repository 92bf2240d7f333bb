//! Errors of CUDA.

use std::fmt::Debug;

/// Why a CUDA operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// A library that CUDA needs is not installed.
    #[error("{library} not found")]
    NoLibrary {
        /// Name of the library.
        library: &'static str,
    },
    /// CUDA is installed, but there is no device.
    #[error("no CUDA device found")]
    NoDevice,
    /// The device has too little free memory.
    #[error("device out of memory: cannot allocate {bytes} bytes")]
    OutOfMemory {
        /// Size of the allocation in bytes.
        bytes: usize,
    },
    /// Any other failure.
    #[error("CUDA failed to {what}: {problem}")]
    Failed {
        /// The operation that failed.
        what: &'static str,
        /// The error reported by CUDA.
        problem: String,
    },
}

impl CudaError {
    /// Whether the machine has no CUDA device, or lacks a library that is needed to use one.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, CudaError::NoLibrary { .. } | CudaError::NoDevice)
    }

    pub(crate) fn failed<E: Debug>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |error| CudaError::Failed { what, problem: format!("{error:?}") }
    }
}
