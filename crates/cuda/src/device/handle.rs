//! A device, its memory, and the kernels compiled for it.

use cudarc::cublas::CudaBlas;
use cudarc::driver::sys::CUresult;
use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, CudaView, CudaViewMut, DeviceRepr,
    DriverError, LaunchConfig, ValidAsZeroBits,
};
use cudarc::nvrtc::{CompileOptions, compile_ptx_with_opts};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Why a device cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// A library of CUDA is not there.
    #[error("there is no {library} on this machine")]
    NoLibrary {
        /// What is missing.
        library: &'static str,
    },
    /// CUDA is there, but no device is.
    #[error("CUDA finds no device")]
    NoDevice,
    /// The memory of the device is too small.
    #[error("the device has no {bytes} bytes left")]
    OutOfMemory {
        /// What was asked for.
        bytes: usize,
    },
    /// Anything else.
    #[error("CUDA could not {what}: {problem}")]
    Failed {
        /// What was tried.
        what: &'static str,
        /// What CUDA says.
        problem: String,
    },
}

impl CudaError {
    pub(crate) fn failed(what: &'static str) -> impl FnOnce(DriverError) -> Self {
        move |error| CudaError::Failed { what, problem: format!("{error:?}") }
    }
}

/// A device with its stream, its kernels and cuBLAS.
#[derive(Debug)]
pub struct Device {
    context: Arc<CudaContext>,
    pub(crate) stream: Arc<CudaStream>,
    pub(crate) blas: CudaBlas,
    kernels: HashMap<&'static str, CudaFunction>,
}

/// An array in the memory of a device.
#[derive(Debug)]
pub struct Array<T>(pub(crate) CudaSlice<T>);

/// The sources of all kernels; later ones use functions of earlier ones.
const SOURCES: &[&str] = &[
    include_str!("kernels/layers.cu"),
    include_str!("kernels/norms.cu"),
    include_str!("kernels/transition.cu"),
    include_str!("kernels/emission.cu"),
    include_str!("kernels/recursion.cu"),
    include_str!("kernels/listed.cu"),
    include_str!("kernels/lockstep.cu"),
    include_str!("kernels/optimizer.cu"),
    include_str!("kernels/counts.cu"),
    include_str!("kernels/recurrent.cu"),
];

const KERNELS: &[&str] = &[
    "gather_rows",
    "add_to_rows",
    "add_sums_of_groups",
    "gather_square",
    "add_to_square",
    "bias_relu",
    "relu_backward",
    "relu_backward_bf16",
    "norm_of_sum",
    "norm_backward",
    "norm_backward_bf16",
    "add_column_sums",
    "to_bf16",
    "scaled_to_bf16",
    "scale_rows",
    "row_log_sums",
    "gather_blocks",
    "transition_gradient",
    "row_log_sums_half",
    "gather_blocks_half",
    "minus_probabilities_half",
    "to_half",
    "softmax",
    "softmax_gradient",
    "mask_emissions",
    "gather_emissions",
    "add_to_emissions",
    "emission_logits",
    "emission_softmax",
    "emission_gradient",
    "emission_to_words",
    "emission_to_states",
    "emission_to_bias",
    "place",
    "passes",
    "join_passes",
    "forward_rows",
    "backward_rows",
    "collect_ratios",
    "collect_differences",
    "sum_groups",
    "gather_listed",
    "scatter_listed",
    "place_listed",
    "gather_listed_blocks",
    "sum_listed",
    "listed_transition_gradient",
    "square_sums",
    "step_scale",
    "adamw",
    "copy_blocks",
    "add_transitions",
    "add_emissions",
    "add_values",
    "add_sum",
    "share_rows",
    "share_columns",
    "keep_rows",
    "elman_step",
    "elman_backward",
    "lstm_step",
    "lstm_backward",
    "dropout",
    "dropout_in_place",
    "next_words",
    "add_rows_of_words",
    "sgd",
];

impl Device {
    /// The first device, with all kernels compiled for it.
    pub fn open() -> Result<Device, CudaError> {
        find_libraries()?;
        let failed = CudaError::failed;
        match CudaContext::device_count() {
            Ok(0) | Err(DriverError(CUresult::CUDA_ERROR_NO_DEVICE)) => {
                return Err(CudaError::NoDevice);
            }
            count => count.map_err(failed("count devices"))?,
        };
        let context = CudaContext::new(0).map_err(failed("open the device"))?;
        // SAFETY: events order what is done in several streams; here whoever uses more than one says what waits for what.
        unsafe { context.disable_event_tracking() };
        let stream = context.new_stream().map_err(failed("make a stream"))?;
        let blas = CudaBlas::new(stream.clone())
            .map_err(|error| failed_with("start cuBLAS", format!("{error:?}")))?;
        let kernels = compile(&context)?;
        Ok(Device { context, stream, blas, kernels })
    }

    /// The same device once more: work that is begun with either goes on at the same time. The arrays of one can be used
    /// with the other as far as [`Device::after`] puts what they do in order.
    pub fn beside(&self) -> Result<Device, CudaError> {
        let stream = self.context.new_stream().map_err(CudaError::failed("make a stream"))?;
        let blas = CudaBlas::new(stream.clone())
            .map_err(|error| failed_with("start cuBLAS", format!("{error:?}")))?;
        Ok(Device { context: self.context.clone(), stream, blas, kernels: self.kernels.clone() })
    }

    /// What is begun from now on waits for all that was begun with the other.
    pub fn after(&self, other: &Device) -> Result<(), CudaError> {
        self.stream.join(&other.stream).map_err(CudaError::failed("wait for other work"))
    }

    /// What the device is called.
    pub fn name(&self) -> String {
        self.context.name().unwrap_or_else(|_| "unnamed device".to_owned())
    }

    /// Copies numbers to the device.
    pub fn upload<T: DeviceRepr>(&self, values: &[T]) -> Result<Array<T>, CudaError> {
        // A device has no arrays of no length.
        let slice = if values.is_empty() { self.room(1) } else { self.stream.clone_htod(values) };
        slice.map(Array).map_err(|error| memory_error(&error, size_of_val(values)))
    }

    /// Copies numbers into an array that is there, from its beginning.
    ///
    /// # Panics
    /// If the array is too short.
    pub fn write<T: DeviceRepr>(
        &self,
        values: &[T],
        array: &mut Array<T>,
    ) -> Result<(), CudaError> {
        if values.is_empty() {
            return Ok(());
        }
        let mut part = array.0.slice_mut(..values.len());
        self.stream.memcpy_htod(values, &mut part).map_err(CudaError::failed("copy to the device"))
    }

    /// An array of zeros.
    pub fn zeros<T: DeviceRepr + ValidAsZeroBits>(
        &self,
        len: usize,
    ) -> Result<Array<T>, CudaError> {
        let slice = self.stream.alloc_zeros(len.max(1));
        slice.map(Array).map_err(|error| memory_error(&error, len * size_of::<T>()))
    }

    /// Sets all numbers to zero.
    pub fn clear<T: DeviceRepr + ValidAsZeroBits>(
        &self,
        array: &mut Array<T>,
    ) -> Result<(), CudaError> {
        self.stream.memset_zeros(&mut array.0).map_err(CudaError::failed("clear an array"))
    }

    /// Copies an array from the device, when all work before is done.
    pub fn download<T: DeviceRepr>(&self, array: &Array<T>) -> Result<Vec<T>, CudaError> {
        self.stream.clone_dtoh(&array.0).map_err(CudaError::failed("finish its work"))
    }

    /// Copies one array over another of the same length.
    pub fn copy<T: DeviceRepr>(&self, from: &Array<T>, to: &mut Array<T>) -> Result<(), CudaError> {
        self.stream.memcpy_dtod(&from.0, &mut to.0).map_err(CudaError::failed("copy an array"))
    }

    /// Waits for all work.
    pub fn wait(&self) -> Result<(), CudaError> {
        self.stream.synchronize().map_err(CudaError::failed("finish its work"))
    }

    /// Makes room for at least so many numbers; what was there is lost if there was less.
    pub fn reserve<T: DeviceRepr + ValidAsZeroBits>(
        &self,
        array: &mut Array<T>,
        len: usize,
    ) -> Result<(), CudaError> {
        if array.len() < len {
            *array = self.zeros(len)?;
        }
        Ok(())
    }

    fn room<T: DeviceRepr>(&self, len: usize) -> Result<CudaSlice<T>, DriverError> {
        // SAFETY: it is room for an array of no numbers, of which nothing reads any.
        unsafe { self.stream.alloc(len) }
    }

    pub(crate) fn kernel(&self, name: &'static str) -> &CudaFunction {
        self.kernels.get(name).expect("all kernels are listed")
    }
}

impl<T> Array<T> {
    /// How many numbers there is room for.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no room.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn at(&self, range: Range<usize>) -> CudaView<'_, T> {
        self.0.slice(range)
    }

    pub(crate) fn at_mut(&mut self, range: Range<usize>) -> CudaViewMut<'_, T> {
        self.0.slice_mut(range)
    }
}

/// Starts a kernel. What calls it has checked that all arrays are as long as the kernel reads and writes, as far as
/// indices on the device do not lead elsewhere.
macro_rules! launch {
    ($device:expr, $name:expr, $config:expr, $($arg:expr),* $(,)?) => {{
        let mut launch = $device.stream.launch_builder($device.kernel($name));
        $(launch.arg($arg);)*
        // SAFETY: the arguments are those of the kernel of this name, in its order, and long enough.
        unsafe { launch.launch($config) }
            .map(|_| ())
            .map_err($crate::CudaError::failed("start a kernel"))
    }};
}
pub(crate) use launch;

/// Enough blocks of threads to fill any device, if there is so much work.
pub(crate) fn for_each(n: usize) -> LaunchConfig {
    const THREADS: usize = 256;
    const MAX_BLOCKS: usize = 8192;
    let blocks = n.div_ceil(THREADS).clamp(1, MAX_BLOCKS);
    grid((blocks, 1, 1), (THREADS, 1))
}

/// A grid of blocks of threads without memory of their own.
pub(crate) fn grid(blocks: (usize, usize, usize), threads: (usize, usize)) -> LaunchConfig {
    LaunchConfig {
        grid_dim: (blocks.0 as u32, blocks.1 as u32, blocks.2 as u32),
        block_dim: (threads.0 as u32, threads.1 as u32, 1),
        shared_mem_bytes: 0,
    }
}

fn find_libraries() -> Result<(), CudaError> {
    // SAFETY: these only look for libraries.
    let (driver, nvrtc, blas) = unsafe {
        (
            cudarc::driver::sys::is_culib_present(),
            cudarc::nvrtc::sys::is_culib_present(),
            cudarc::cublas::sys::is_culib_present(),
        )
    };
    for (is_there, library) in
        [(driver, "NVIDIA driver"), (nvrtc, "NVRTC (CUDA's compiler)"), (blas, "cuBLAS")]
    {
        if !is_there {
            return Err(CudaError::NoLibrary { library });
        }
    }
    Ok(())
}

fn compile(context: &Arc<CudaContext>) -> Result<HashMap<&'static str, CudaFunction>, CudaError> {
    let (major, minor) =
        context.compute_capability().map_err(CudaError::failed("ask for its capability"))?;
    let options = CompileOptions {
        options: vec![
            format!("--gpu-architecture=sm_{major}{minor}"),
            "-default-device".to_owned(),
        ],
        ftz: Some(true),
        ..CompileOptions::default()
    };
    let ptx = compile_ptx_with_opts(SOURCES.join("\n"), options)
        .map_err(|error| failed_with("compile kernels", format!("{error:?}")))?;
    let module = context.load_module(ptx).map_err(CudaError::failed("load kernels"))?;
    let load = |&name: &&'static str| {
        let kernel = module.load_function(name).map_err(CudaError::failed("load a kernel"))?;
        Ok((name, kernel))
    };
    KERNELS.iter().map(load).collect()
}

pub(crate) fn failed_with(what: &'static str, problem: String) -> CudaError {
    CudaError::Failed { what, problem }
}

fn memory_error(error: &DriverError, bytes: usize) -> CudaError {
    match error.0 {
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => CudaError::OutOfMemory { bytes },
        _ => failed_with("make room on the device", format!("{error:?}")),
    }
}
