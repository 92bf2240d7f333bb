//! The handle of a device and its stream.

use super::capability::{capability, has_tiles};
use super::error::CudaError;
use cudarc::cublas::CudaBlas;
use cudarc::driver::sys::CUdevice_attribute;
use cudarc::driver::{CudaContext, CudaFunction, CudaStream, LaunchArgs};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A device with a stream, compiled kernels and cuBLAS.
///
/// Operations run asynchronously, in the order of the calls. Downloads and [`Device::wait`] wait for them.
#[derive(Debug)]
pub struct Device {
    context: Arc<CudaContext>,
    pub(crate) stream: Arc<CudaStream>,
    pub(crate) blas: Arc<CudaBlas>,
    functions: HashMap<&'static str, CudaFunction>,
    /// The number of multiprocessors, each of which can run a thread block that needs all shared memory.
    pub(crate) n_processors: usize,
    /// Whether the device has warpgroup matrix instructions (`wgmma`).
    pub(crate) has_tiles: bool,
    /// Launches of the work that [`Device::replay`] notes or records.
    notes: Mutex<Option<Notes>>,
}

/// Descriptions of launches, one after the other.
#[derive(Debug)]
struct Notes {
    words: Vec<u64>,
    /// Whether the launches also take place.
    launches: bool,
}

impl Device {
    pub(super) fn new(
        context: Arc<CudaContext>,
        functions: HashMap<&'static str, CudaFunction>,
    ) -> Result<Device, CudaError> {
        let stream = context.new_stream().map_err(CudaError::failed("create a stream"))?;
        let blas = CudaBlas::new(stream.clone()).map_err(CudaError::failed("start cuBLAS"))?;
        let n_processors = context
            .attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
            .map_err(CudaError::failed("count its processors"))?;
        let has_tiles = has_tiles(capability(&context)?);
        Ok(Device {
            context,
            stream,
            blas: Arc::new(blas),
            functions,
            n_processors: n_processors.max(1) as usize,
            has_tiles,
            notes: Mutex::default(),
        })
    }

    /// A handle of the same device with a stream of its own, whose work overlaps with the work of this one.
    ///
    /// Arrays of one handle can be used with the other. Nothing orders such uses but [`Device::after`].
    ///
    /// # Safety
    /// Whenever both streams use an array, and at least one of them writes to it, the later use must be ordered after
    /// the earlier one by [`Device::after`]. Allocating an array counts as a write on the stream that allocates it.
    /// Dropping it, or growing it with [`Device::reserve`], counts as a write on the same stream.
    pub unsafe fn new_stream(&self) -> Result<Device, CudaError> {
        Device::new(self.context.clone(), self.functions.clone())
    }

    /// Orders all later work of this handle after the work that `other` has started so far.
    pub fn after(&self, other: &Device) -> Result<(), CudaError> {
        self.check_not_noted();
        other.check_not_noted();
        self.stream.join(&other.stream).map_err(CudaError::failed("wait for another stream"))
    }

    /// Waits for all work of this handle.
    pub fn wait(&self) -> Result<(), CudaError> {
        self.check_not_noted();
        self.stream.synchronize().map_err(CudaError::failed("complete its work"))
    }

    /// Name of the device.
    pub fn name(&self) -> String {
        self.context.name().unwrap_or_else(|_| "unnamed device".to_owned())
    }

    /// Panics if an array that was allocated on `stream` belongs to another device or another [`Device::open`].
    #[track_caller]
    pub(crate) fn check_owner(&self, stream: &CudaStream) {
        let is_own = Arc::ptr_eq(&self.context, stream.context());
        assert!(is_own, "an array must be used with the device that allocated it");
    }

    /// Notes launches from now on. They take place only if `launches`.
    pub(super) fn begin_notes(&self, launches: bool) {
        *self.notes() = Some(Notes { words: vec![self.stream.cu_stream() as u64], launches });
    }

    pub(super) fn end_notes(&self) -> Vec<u64> {
        self.notes().take().map_or_else(Vec::new, |notes| notes.words)
    }

    /// Notes a launch, which `note` describes completely, if launches are noted. Returns whether that is all to do.
    pub(crate) fn is_only_noted(&self, note: impl FnOnce(&mut Vec<u64>)) -> bool {
        match &mut *self.notes() {
            Some(notes) => {
                note(&mut notes.words);
                !notes.launches
            }
            None => false,
        }
    }

    /// Panics in work for [`Device::replay`], which may only launch kernels and products.
    #[track_caller]
    pub(super) fn check_not_noted(&self) {
        assert!(self.notes().is_none(), "work to record may not allocate, copy or wait");
    }

    fn notes(&self) -> MutexGuard<'_, Option<Notes>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn launch_builder(&self, kernel: &'static str) -> LaunchArgs<'_> {
        self.stream.launch_builder(&self.functions[kernel])
    }
}
