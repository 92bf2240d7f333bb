//! Random subsets of states.

use latens_math::Rng;

/// Draws `n` of the numbers below `total` without replacement, uniformly; returns them in ascending order.
///
/// A partial shuffle: Floyd's algorithm would need less memory, but `total` is small.
pub(crate) fn draw_subset(total: usize, n: usize, rng: &mut Rng) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..total as u32).collect();
    for i in 0..n {
        let other = i + (rng.uniform() * (total - i) as f64) as usize;
        numbers.swap(i, other);
    }
    numbers.truncate(n);
    numbers.sort_unstable();
    numbers
}
