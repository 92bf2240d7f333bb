//! Sums over the devices of several processes, with NCCL. The library is loaded when it is used; nothing else needs it.

use crate::device::{Array, CudaError, Device, Element};
use cudarc::driver::{CudaStream, DevicePtrMut};
use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Arc, OnceLock};

/// Bytes that identify a communicator. One process creates them, and all processes pass them to [`Nccl::join`].
pub type NcclId = [u8; 128];

type Comm = *mut c_void;

#[repr(C)]
#[derive(Clone, Copy)]
struct UniqueId {
    internal: [u8; 128],
}

/// The functions of the library, as `nccl.h` declares them since version 2.0.
struct Functions {
    unique_id: unsafe extern "C" fn(*mut UniqueId) -> c_int,
    init: unsafe extern "C" fn(*mut Comm, c_int, UniqueId, c_int) -> c_int,
    all_reduce: unsafe extern "C" fn(
        *const c_void,
        *mut c_void,
        usize,
        c_int,
        c_int,
        Comm,
        *mut c_void,
    ) -> c_int,
    abort: unsafe extern "C" fn(Comm) -> c_int,
    error: unsafe extern "C" fn(c_int) -> *const c_char,
    /// Keeps the functions loaded.
    _library: Library,
}

/// `ncclSum`, `ncclFloat32` and `ncclFloat64`
const SUM: c_int = 0;
const FLOAT_32: c_int = 7;
const FLOAT_64: c_int = 8;

fn functions() -> Result<&'static Functions, CudaError> {
    static FUNCTIONS: OnceLock<Option<Functions>> = OnceLock::new();
    let load = || {
        // SAFETY: the initialization of this library has no preconditions, and the types are those of its header.
        unsafe {
            let names = ["libnccl.so.2", "libnccl.so"];
            let library = names.into_iter().find_map(|name| Library::new(name).ok())?;
            Some(Functions {
                unique_id: *library.get(b"ncclGetUniqueId\0").ok()?,
                init: *library.get(b"ncclCommInitRank\0").ok()?,
                all_reduce: *library.get(b"ncclAllReduce\0").ok()?,
                abort: *library.get(b"ncclCommAbort\0").ok()?,
                error: *library.get(b"ncclGetErrorString\0").ok()?,
                _library: library,
            })
        }
    };
    FUNCTIONS.get_or_init(load).as_ref().ok_or(CudaError::NoLibrary { library: "NCCL" })
}

impl Functions {
    fn check(&self, status: c_int, what: &'static str) -> Result<(), CudaError> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: the function returns a constant string for every number.
        let problem = unsafe { CStr::from_ptr((self.error)(status)) };
        Err(CudaError::Failed { what, problem: problem.to_string_lossy().into_owned() })
    }
}

/// A device in a group of processes, each of which has a device of its own.
pub struct Nccl {
    comm: Comm,
    stream: Arc<CudaStream>,
    functions: &'static Functions,
}

impl Nccl {
    /// Whether the library is installed.
    pub fn is_installed() -> bool {
        functions().is_ok()
    }

    /// Creates the bytes that identify a communicator.
    pub fn id() -> Result<NcclId, CudaError> {
        let functions = functions()?;
        let mut id = UniqueId { internal: [0; 128] };
        // SAFETY: the function writes to `id`.
        let status = unsafe { (functions.unique_id)(&raw mut id) };
        functions.check(status, "create an id of NCCL")?;
        Ok(id.internal)
    }

    /// Joins the communicator `id` as number `rank` of `size`. Waits for all others.
    pub fn join(device: &Device, rank: usize, size: usize, id: NcclId) -> Result<Nccl, CudaError> {
        let functions = functions()?;
        let (Ok(n), Ok(i)) = (c_int::try_from(size), c_int::try_from(rank)) else {
            let problem = format!("{size} processes are too many");
            return Err(CudaError::Failed { what: "start NCCL", problem });
        };
        let stream = device.stream.clone();
        stream.context().bind_to_thread().map_err(CudaError::failed("start NCCL"))?;
        let (mut comm, id) = (std::ptr::null_mut(), UniqueId { internal: id });
        // SAFETY: the function writes to `comm`. The context of the device is current.
        let status = unsafe { (functions.init)(&raw mut comm, n, id, i) };
        functions.check(status, "start NCCL")?;
        Ok(Nccl { comm, stream, functions })
    }

    /// Replaces the values of an array by their sums over all processes, on the stream of the device that joined.
    pub fn sum(&self, array: &mut Array<f32>) -> Result<(), CudaError> {
        self.sum_of(array, FLOAT_32)
    }

    /// As [`Nccl::sum`].
    pub fn sum_f64(&self, array: &mut Array<f64>) -> Result<(), CudaError> {
        self.sum_of(array, FLOAT_64)
    }

    fn sum_of<T: Element>(&self, array: &mut Array<T>, kind: c_int) -> Result<(), CudaError> {
        let count = array.len();
        let mut view = array.all_mut();
        let (pointer, _guard) = view.0.device_ptr_mut(&self.stream);
        let (values, stream) = (pointer as *mut c_void, self.stream.cu_stream().cast());
        // SAFETY: the array has `count` elements of this kind, in a context that lives as long as the array.
        let status = unsafe {
            (self.functions.all_reduce)(values, values, count, kind, SUM, self.comm, stream)
        };
        self.functions.check(status, "add up over devices")
    }
}

impl Drop for Nccl {
    fn drop(&mut self) {
        // Unlike `ncclCommDestroy`, this does not wait for a process that has ended.
        // SAFETY: the communicator is not used any more.
        unsafe { (self.functions.abort)(self.comm) };
    }
}
