mod handle;

pub use handle::{Array, CudaError, Device};
pub(crate) use handle::{failed_with, for_each, grid, launch};
