//! Prefetching.

/// Size of a cache line in bytes.
const LINE: usize = 64;

/// Asks the processor to load values that will be needed soon. Without effect on results.
#[inline(always)]
#[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
pub fn prefetch<T>(values: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for part in values.chunks((LINE / size_of::<T>().max(1)).max(1)) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch does not read memory and cannot fault, and every x86-64 processor has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(part.as_ptr().cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, LINE);
}
