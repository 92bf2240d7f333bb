//! The state in which products leave the vector registers.

/// Clears the upper halves of the vector registers.
///
/// The kernels of `faer` are assembler code that leaves numbers there. Until the next instruction that clears them,
/// every instruction for the lower halves alone, i.e., most scalar code of programs that are compiled for all
/// processors, has to preserve the upper halves and waits for the one before it. An M-step of a factorial HMM with a
/// few products and 100,000 logarithms then took 23 ms instead of 1.3 ms.
#[inline]
#[expect(unsafe_code, reason = "the intrinsic needs AVX")]
pub(super) fn clear_upper_halves() {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx") {
        // SAFETY: the processor has AVX, and no other code expects values in the upper halves across this call.
        unsafe { std::arch::x86_64::_mm256_zeroupper() }
    }
}
