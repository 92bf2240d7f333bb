//! Counts of words in topics, in the layout that sampling needs.

use std::collections::HashMap;

/// Largest count up to which `f32` represents every integer: 2²⁴.
const EXACT: f32 = 16_777_216.0;

/// n_wk in padded rows of `f32`, so that the samplers need no conversion. Counts above 2²⁴ are also kept as integers.
#[derive(Clone, Default)]
pub(super) struct Rows {
    values: Vec<f32>,
    /// The exact counts above 2²⁴, by position in `values`.
    large: HashMap<usize, u32>,
}

impl Rows {
    /// `n` counts of zero.
    pub(super) fn new(n: usize) -> Rows {
        Rows { values: vec![0.0; n], large: HashMap::new() }
    }

    /// Sets the count at a position.
    pub(super) fn set(&mut self, at: usize, count: u32) {
        self.set_large(at, count);
    }

    /// The counts, rounded to `f32`.
    #[inline(always)]
    pub(super) fn values(&self) -> &[f32] {
        &self.values
    }

    /// The exact count at a position.
    pub(super) fn count(&self, at: usize) -> u32 {
        match self.values[at] {
            n if n < EXACT => n as u32,
            _ => self.large.get(&at).copied().unwrap_or(EXACT as u32),
        }
    }

    #[inline(always)]
    pub(super) fn add(&mut self, at: usize) {
        if self.values[at] < EXACT {
            self.values[at] += 1.0;
        } else {
            self.set_large(at, self.count(at) + 1);
        }
    }

    #[inline(always)]
    pub(super) fn remove(&mut self, at: usize) {
        if self.values[at] < EXACT {
            self.values[at] -= 1.0;
        } else {
            self.set_large(at, self.count(at) - 1);
        }
    }

    #[cold]
    fn set_large(&mut self, at: usize, count: u32) {
        if count > EXACT as u32 {
            self.large.insert(at, count);
        } else {
            self.large.remove(&at);
        }
        self.values[at] = count as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_above_the_precision_of_f32_are_exact() {
        let mut rows = Rows::new(3);
        let limit = EXACT as u32;
        (0..limit + 5).for_each(|_| rows.add(1));
        assert_eq!(rows.count(1), limit + 5);
        assert_eq!(rows.values()[1], (limit + 5) as f32);
        // A sampler removes a token and adds it again.
        for _ in 0..100 {
            rows.remove(1);
            assert_eq!(rows.count(1), limit + 4);
            rows.add(1);
        }
        (0..10).for_each(|_| rows.remove(1));
        assert_eq!(rows.count(1), limit - 5);
        assert!(rows.large.is_empty());
        assert_eq!([rows.count(0), rows.count(2)], [0, 0]);
    }
}
