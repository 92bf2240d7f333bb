//! The device of a test.

use latens_cuda::{CudaError, Device, KERNELS};
use std::io::Write;

/// Opens a device for a test that compares these kernels with their twins. Without a device it returns `None` and says on
/// stderr that the test is skipped.
pub(crate) fn device(kernels: &[&str]) -> Option<Device> {
    for kernel in kernels {
        assert!(KERNELS.contains(kernel), "there is no kernel `{kernel}`");
    }
    match Device::open() {
        Err(error) if error.is_unavailable() => {
            let thread = std::thread::current();
            let test = thread.name().unwrap_or("a test");
            // Unlike `eprintln`, this is not captured by the test harness. One write keeps the line whole.
            let line = format!("{test} skipped: {error}\n");
            let _ = std::io::stderr().write_all(line.as_bytes());
            None
        }
        device => Some(device.done("open a device")),
    }
}

/// Unwraps a result, or panics with the operation that failed.
pub(crate) trait Done<T> {
    fn done(self, what: &str) -> T;
}

impl<T> Done<T> for Result<T, CudaError> {
    fn done(self, what: &str) -> T {
        self.unwrap_or_else(|error| panic!("{what}: {error}"))
    }
}
