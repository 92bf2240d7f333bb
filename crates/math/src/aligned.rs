//! Buffers that are aligned to cache lines.

use num_traits::Zero;
use std::ops::{Deref, DerefMut};

/// Size of a cache line in bytes.
const LINE: usize = 64;

/// A buffer that is aligned to a cache line. SIMD loads and stores that cross cache lines are slower, and a large
/// [`Vec`] usually begins in the middle of one.
#[derive(Debug, Default)]
pub struct Aligned<T> {
    values: Vec<T>,
    begin: usize,
    len: usize,
}

impl<T: Copy + Zero> Aligned<T> {
    /// Changes the length. The values are unspecified afterwards: zeros, or values of earlier uses.
    pub fn resize(&mut self, len: usize) {
        let n_spare = LINE / size_of::<T>();
        if self.values.len() < len + n_spare {
            self.values = vec![T::zero(); len + n_spare];
            let begin = self.values.as_ptr().align_offset(LINE);
            // The alignment may be unknown, which is an offset without meaning.
            self.begin = if begin < n_spare { begin } else { 0 };
        }
        self.len = len;
    }
}

impl<T> Deref for Aligned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.values[self.begin..self.begin + self.len]
    }
}

impl<T> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.values[self.begin..self.begin + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_begin_at_a_cache_line() {
        let mut values = Aligned::<f32>::default();
        assert!(values.is_empty());
        for len in [3, 100_000, 7, 100_001] {
            values.resize(len);
            assert_eq!(values.len(), len);
            assert_eq!(values.as_ptr().addr() % LINE, 0);
            values[len - 1] = 1.0;
        }
    }
}
