//! Devices with warpgroup matrix instructions (`wgmma`), and what the kernel that uses them needs.

use super::error::CudaError;
use cudarc::driver::CudaContext;

/// The kernel that multiplies tiles in shared memory.
pub(super) const TILED_KERNEL: &str = "minus_powers";

/// Its shared memory in bytes: three tiles, and room to align them. What exceeds 48 KiB must be requested.
pub(crate) const TILED_MEMORY: u32 = 3 * 128 * 256 * 2 + 1024;

/// The compute capability of a device.
pub(super) fn capability(context: &CudaContext) -> Result<(i32, i32), CudaError> {
    context.compute_capability().map_err(CudaError::failed("query the compute capability"))
}

/// Whether a device with this compute capability has warpgroup matrix instructions. Later devices have others.
pub(super) fn has_tiles(capability: (i32, i32)) -> bool {
    capability == (9, 0)
}
