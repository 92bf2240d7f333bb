//! Counts of words in topics, in the layout that sampling needs.

use rayon::prelude::*;
use std::collections::HashMap;
use std::ops::Range;

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

    /// Copies the counts at the positions `parts[i]` from `all[i]` to all others. Parts are adjacent, and cover all counts.
    pub(super) fn share(mut all: Vec<&mut Rows>, parts: &[Range<usize>]) {
        for (i, part) in parts.iter().enumerate() {
            let is_in_part = |(at, _): &(&usize, &u32)| part.contains(at);
            let large = all[i].large.iter().filter(is_in_part).map(|(&at, &n)| (at, n));
            let large: Vec<(usize, u32)> = large.collect();
            for rows in &mut all {
                rows.large.retain(|at, _| !part.contains(at));
                rows.large.extend(large.iter().copied());
            }
        }
        let mut copies: Vec<Vec<&mut [f32]>> = parts.iter().map(|_| vec![]).collect();
        for rows in all {
            let mut rest = &mut rows.values[..];
            for (part, copies) in parts.iter().zip(&mut copies) {
                let (values, others) = rest.split_at_mut(part.len());
                copies.push(values);
                rest = others;
            }
        }
        copies.par_iter_mut().enumerate().for_each(|(i, copies)| {
            let (before, rest) = copies.split_at_mut(i);
            if let Some((source, after)) = rest.split_first_mut() {
                before.iter_mut().chain(after).for_each(|copy| copy.copy_from_slice(source));
            }
        });
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

    #[test]
    fn every_part_is_copied_from_its_owner() {
        let limit = EXACT as u32;
        let mut first = Rows::new(6);
        let mut second = first.clone();
        let counts = [1, limit + 3, 2, 4, limit + 9, 5];
        (0..3).for_each(|at| first.set(at, counts[at]));
        (3..6).for_each(|at| second.set(at, counts[at]));
        first.set(5, limit + 1);
        second.set(0, limit + 2);
        Rows::share(vec![&mut first, &mut second], &[0..3, 3..6]);
        for rows in [first, second] {
            assert_eq!([0, 1, 2, 3, 4, 5].map(|at| rows.count(at)), counts);
            assert_eq!(rows.large.len(), 2);
        }
    }
}
