//! Code for the vector instructions of the machine that it runs on.

use pulp::{Arch, Simd, WithSimd};

/// Runs a closure, compiled for the widest vector instructions that this machine has.
///
/// The closure and all functions that it calls in its inner loops must be `#[inline(always)]`; other functions are compiled
/// for every machine alike. The result does not depend on the instructions.
#[inline(always)]
pub fn vectorized<R>(f: impl FnMut() -> R) -> R {
    Arch::new().dispatch(Call(f))
}

/// A closure, called as `FnMut`.
///
/// As `FnOnce`, a closure that could also be called several times gets a wrapper without `#[inline(always)]`. The compiler
/// does not inline a long one, and all vector instructions are lost.
struct Call<F>(F);

impl<R, F: FnMut() -> R> WithSimd for Call<F> {
    type Output = R;

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) -> R {
        (self.0)()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_is_that_of_the_closure() {
        let mut n = [1.0f32; 20];
        let sum = vectorized(
            #[inline(always)]
            || {
                n.iter_mut().for_each(|n| *n *= 2.0);
                n.iter().sum::<f32>()
            },
        );
        assert_eq!((sum, n), (40.0, [2.0; 20]));
    }
}
