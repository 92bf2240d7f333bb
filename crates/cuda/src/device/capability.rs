//! Compute capabilities: which devices can be used, and which of them have warpgroup matrix instructions (`wgmma`).

use super::error::CudaError;
use cudarc::driver::CudaContext;

/// The compute capability of a device.
pub(super) fn capability(context: &CudaContext) -> Result<(i32, i32), CudaError> {
    context.compute_capability().map_err(CudaError::failed("query the compute capability"))
}

/// Rejects devices without bf16.
pub(super) fn check((major, minor): (i32, i32)) -> Result<(), CudaError> {
    if (major, minor) < (8, 0) { Err(CudaError::OldDevice { major, minor }) } else { Ok(()) }
}

/// Whether a device with this compute capability has warpgroup matrix instructions. Later devices have others.
pub(super) fn has_tiles(capability: (i32, i32)) -> bool {
    capability == (9, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_need_bf16() {
        for (capability, is_new) in
            [((5, 2), false), ((7, 5), false), ((8, 0), true), ((9, 0), true), ((12, 0), true)]
        {
            assert_eq!(check(capability).is_ok(), is_new, "{capability:?}");
        }
        let error = check((7, 5)).unwrap_err();
        assert!(error.is_unavailable());
        assert_eq!(
            error.to_string(),
            "the CUDA device has compute capability 7.5, but 8.0 or later is needed"
        );
    }
}
