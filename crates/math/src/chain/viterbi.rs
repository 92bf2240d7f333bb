//! The most likely path with scaled weights.

use super::Chain;
use super::scaled::SMALLEST_SCALE;
use crate::Real;

/// Returns the path of largest weight and the logarithm of its weight. Ties go to the smallest state.
///
/// δ_t(j) = local_t(j) max_i δ_{t−1}(i) pair_{t−1}(i, j), scaled to a maximum of one at every step;
/// `None` if the scale of a step is below [`SMALLEST_SCALE`].
pub fn viterbi<T: Real>(chain: &impl Chain<T>) -> Option<(Vec<u32>, f64)> {
    let mut best = chain.local(0).to_vec();
    let mut log_weight = scale(&mut best)?.ln();
    let mut origins: Vec<Vec<u32>> = Vec::with_capacity(chain.n_steps());
    for step in 1..chain.n_steps() {
        let (pairs, local) = (chain.pairs(step - 1), chain.local(step));
        let (mut next, mut origin) = (vec![T::zero(); local.len()], vec![0; local.len()]);
        crate::vectorized(
            #[inline(always)]
            || {
                for ((i, &best), pairs) in
                    best.iter().enumerate().zip(pairs.chunks_exact(local.len()))
                {
                    for ((next, origin), &pair) in next.iter_mut().zip(&mut origin).zip(pairs) {
                        let weight = best * pair;
                        *origin = if weight > *next { i as u32 } else { *origin };
                        *next = if weight > *next { weight } else { *next };
                    }
                }
            },
        );
        next.iter_mut().zip(local).for_each(|(next, &local)| *next *= local);
        log_weight += scale(&mut next)?.ln();
        origins.push(origin);
        best = next;
    }
    let last = best
        .iter()
        .position(|&best| best == T::one())
        .expect("the largest value was scaled to one");
    Some((trace(last as u32, &origins), log_weight))
}

/// Divides by the largest value and returns it, or `None` if it is too small.
fn scale<T: Real>(values: &mut [T]) -> Option<f64> {
    let largest =
        values.iter().fold(T::zero(), |max, &value| if value > max { value } else { max });
    if largest.wide() < SMALLEST_SCALE || !largest.is_finite() {
        return None;
    }
    values.iter_mut().for_each(|value| *value /= largest);
    Some(largest.wide())
}

/// Returns the path that ends in `last`, where `origins[t][j]` is the best predecessor of state j of step t + 1.
pub(super) fn trace(last: u32, origins: &[Vec<u32>]) -> Vec<u32> {
    let mut path = vec![last];
    for origin in origins.iter().rev() {
        path.push(origin[path[path.len() - 1] as usize]);
    }
    path.reverse();
    path
}
