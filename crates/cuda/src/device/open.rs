//! Opening a device.

use super::capability::{capability, check, has_tiles};
use super::compile::compiled;
use super::error::CudaError;
use super::handle::Device;
use super::kernels::{KERNELS, TILED_KERNEL, TILED_MEMORY};
use cudarc::driver::sys::{CUfunction_attribute, CUresult};
use cudarc::driver::{CudaContext, CudaFunction, DriverError};
use std::collections::HashMap;
use std::sync::Arc;

impl Device {
    /// Opens the first device and loads all kernels, compiled for it now or earlier.
    pub fn open() -> Result<Device, CudaError> {
        find_libraries()?;
        match CudaContext::device_count() {
            Ok(0) | Err(DriverError(CUresult::CUDA_ERROR_NO_DEVICE)) => {
                return Err(CudaError::NoDevice);
            }
            count => count.map_err(CudaError::failed("count devices"))?,
        };
        let context = CudaContext::new(0).map_err(CudaError::failed("open the device"))?;
        check(capability(&context)?)?;
        // SAFETY: tracking orders the use of arrays in several streams. A handle has one stream and takes no arrays of
        // another `open`; who calls the unsafe `new_stream` orders the rest.
        unsafe { context.disable_event_tracking() };
        let functions = load(&context)?;
        Device::new(context, functions)
    }
}

fn find_libraries() -> Result<(), CudaError> {
    // SAFETY: these functions only look for the libraries.
    let libraries = unsafe {
        [
            (cudarc::driver::sys::is_culib_present(), "NVIDIA driver"),
            (cudarc::nvrtc::sys::is_culib_present(), "NVRTC (the CUDA compiler)"),
            (cudarc::cublas::sys::is_culib_present(), "cuBLAS"),
        ]
    };
    match libraries.into_iter().find(|(is_present, _)| !is_present) {
        Some((_, library)) => Err(CudaError::NoLibrary { library }),
        None => Ok(()),
    }
}

fn load(context: &Arc<CudaContext>) -> Result<HashMap<&'static str, CudaFunction>, CudaError> {
    let ptx = compiled(context)?;
    let module = context.load_module(ptx).map_err(CudaError::failed("load the kernels"))?;
    let load = |&name: &&'static str| {
        let function = module.load_function(name).map_err(CudaError::failed("load a kernel"))?;
        Ok((name, function))
    };
    let functions: HashMap<_, _> = KERNELS.iter().map(load).collect::<Result<_, _>>()?;
    if has_tiles(capability(context)?) {
        let most = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        functions[TILED_KERNEL]
            .set_attribute(most, TILED_MEMORY as i32)
            .map_err(CudaError::failed("reserve shared memory"))?;
    }
    Ok(functions)
}
