//! Readers for the tests of memory limits.

use std::io::{self, Read};

/// Repeats some bytes without end and counts how much was read.
pub(crate) struct Endless {
    pattern: &'static [u8],
    pub(crate) n_read: usize,
}

impl Endless {
    pub(crate) fn new(pattern: &'static [u8]) -> Endless {
        Endless { pattern, n_read: 0 }
    }
}

impl Read for Endless {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        for byte in &mut *out {
            *byte = self.pattern[self.n_read % self.pattern.len()];
            self.n_read += 1;
        }
        Ok(out.len())
    }
}
