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
    /// The device is too old.
    #[error("the CUDA device has compute capability {major}.{minor}, but 8.0 or later is needed")]
    OldDevice {
        /// Major number of the compute capability.
        major: i32,
        /// Minor number of the compute capability.
        minor: i32,
    },
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
    /// Whether the machine has no CUDA device that can be used, or lacks a library that is needed to use one.
    pub fn is_unavailable(&self) -> bool {
        matches!(
            self,
            CudaError::NoLibrary { .. } | CudaError::NoDevice | CudaError::OldDevice { .. }
        )
    }

    pub(crate) fn failed<E: Debug>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |error| CudaError::Failed { what, problem: format!("{error:?}") }
    }
}
