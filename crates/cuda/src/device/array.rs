//! Arrays in device memory.

use super::element::{Element, sealed::Stored};
use cudarc::driver::{CudaSlice, CudaView, CudaViewMut};
use half::{bf16, f16};
use std::fmt;
use std::ops::Range;

/// An array in the memory of a device. It holds at least one element.
#[repr(transparent)]
pub struct Array<T: Element>(pub(super) CudaSlice<<T as Stored>::Bits>);

/// A range of an array that a kernel reads.
pub struct View<'a, T: Element>(pub(crate) CudaView<'a, <T as Stored>::Bits>);

/// A range of an array that a kernel writes.
pub struct ViewMut<'a, T: Element>(pub(crate) CudaViewMut<'a, <T as Stored>::Bits>);

impl<T: Element> Array<T> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the array has no elements, which is never the case.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[track_caller]
    pub(crate) fn at(&self, range: Range<usize>) -> View<'_, T> {
        check_range(&range, self.len());
        View(self.0.slice(range))
    }

    #[track_caller]
    pub(crate) fn at_mut(&mut self, range: Range<usize>) -> ViewMut<'_, T> {
        check_range(&range, self.len());
        ViewMut(self.0.slice_mut(range))
    }

    pub(crate) fn all(&self) -> View<'_, T> {
        View(self.0.as_view())
    }

    pub(crate) fn all_mut(&mut self) -> ViewMut<'_, T> {
        ViewMut(self.0.as_view_mut())
    }
}

impl Array<f16> {
    /// The same memory with its bits read as bf16. No value is converted.
    pub fn as_bf16(&self) -> &Array<bf16> {
        // SAFETY: both arrays are transparent wrappers of a `CudaSlice<u16>`, and all bits are valid in both formats.
        unsafe { &*std::ptr::from_ref(self).cast() }
    }

    /// The same memory with its bits read and written as bf16. No value is converted.
    pub fn as_bf16_mut(&mut self) -> &mut Array<bf16> {
        // SAFETY: as in `as_bf16`; the reference is exclusive.
        unsafe { &mut *std::ptr::from_mut(self).cast() }
    }
}

impl<T: Element> fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Array").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[track_caller]
fn check_range(range: &Range<usize>, len: usize) {
    assert!(
        range.start <= range.end && range.end <= len,
        "range {range:?} is out of bounds of an array of {len} elements"
    );
}
