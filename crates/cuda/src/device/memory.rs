//! Allocating, copying and clearing arrays.

use super::array::Array;
use super::element::{Element, sealed::Stored};
use super::error::CudaError;
use super::handle::Device;
use super::launch::{at_least, exactly};
use cudarc::driver::sys::CUresult;
use cudarc::driver::{CudaSlice, DriverError};

impl Device {
    /// A new array with a copy of `values`. It has one element, a zero, if there are no values.
    pub fn upload<T: Element>(&self, values: &[T]) -> Result<Array<T>, CudaError> {
        if values.is_empty() {
            return self.zeros(1);
        }
        self.check_not_noted();
        allocated::<T>(self.stream.clone_htod(T::to_bits(values)), values.len())
    }

    /// A new array of `len` zeros, or of one if `len` is 0.
    pub fn zeros<T: Element>(&self, len: usize) -> Result<Array<T>, CudaError> {
        self.check_not_noted();
        allocated::<T>(self.stream.alloc_zeros(len.max(1)), len)
    }

    /// Replaces the array with one of `len` zeros if it is shorter.
    pub fn reserve<T: Element>(&self, array: &mut Array<T>, len: usize) -> Result<(), CudaError> {
        if array.len() < len {
            *array = self.zeros(len)?;
        }
        Ok(())
    }

    /// Copies `values` to the beginning of an array.
    pub fn write<T: Element>(&self, values: &[T], array: &mut Array<T>) -> Result<(), CudaError> {
        self.write_at(values, array, 0)
    }

    /// Copies `values` to an array, from an index on.
    pub fn write_at<T: Element>(
        &self,
        values: &[T],
        array: &mut Array<T>,
        at: usize,
    ) -> Result<(), CudaError> {
        self.check_not_noted();
        self.check_owner(array.0.stream());
        at_least("array", array.len(), at + values.len());
        if values.is_empty() {
            return Ok(());
        }
        let mut part = array.0.slice_mut(at..at + values.len());
        let copied = self.stream.memcpy_htod(T::to_bits(values), &mut part);
        copied.map_err(CudaError::failed("copy to the device"))
    }

    /// Sets all elements to zero.
    pub fn clear<T: Element>(&self, array: &mut Array<T>) -> Result<(), CudaError> {
        self.check_not_noted();
        self.check_owner(array.0.stream());
        self.stream.memset_zeros(&mut array.0).map_err(CudaError::failed("clear an array"))
    }

    /// Copies an array to another one of the same length.
    pub fn copy<T: Element>(&self, from: &Array<T>, to: &mut Array<T>) -> Result<(), CudaError> {
        self.check_not_noted();
        self.check_owner(from.0.stream());
        self.check_owner(to.0.stream());
        exactly("to", to.len(), from.len());
        self.stream.memcpy_dtod(&from.0, &mut to.0).map_err(CudaError::failed("copy an array"))
    }

    /// Waits for all work of this handle and copies an array to the host.
    pub fn download<T: Element>(&self, array: &Array<T>) -> Result<Vec<T>, CudaError> {
        self.check_not_noted();
        self.check_owner(array.0.stream());
        let bits = self.stream.clone_dtoh(&array.0);
        bits.map(T::from_bits).map_err(CudaError::failed("complete its work"))
    }

    /// Waits for all work of this handle and copies the first `n` elements of an array to the host.
    pub fn download_first<T: Element>(
        &self,
        array: &Array<T>,
        n: usize,
    ) -> Result<Vec<T>, CudaError> {
        self.check_not_noted();
        self.check_owner(array.0.stream());
        at_least("array", array.len(), n);
        if n == 0 {
            return Ok(Vec::new());
        }
        let bits = self.stream.clone_dtoh(&array.0.slice(..n));
        bits.map(T::from_bits).map_err(CudaError::failed("complete its work"))
    }
}

/// An array of `len` elements, unless its allocation or initialization failed.
fn allocated<T: Element>(
    slice: Result<CudaSlice<<T as Stored>::Bits>, DriverError>,
    len: usize,
) -> Result<Array<T>, CudaError> {
    slice.map(Array).map_err(|error| match error.0 {
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
            CudaError::OutOfMemory { bytes: len * size_of::<T>() }
        }
        _ => CudaError::failed("allocate an array")(error),
    })
}
