//! The best path of a homogeneous chain given by scores.

use crate::Real;

/// Returns the path with the largest sum of scores. Ties go to the smallest state.
///
/// `local` holds `n_states` scores per step. `pairs` holds the scores of each state (row) and the next one (column),
/// the same at every step. This is the log-space counterpart of [`viterbi`](super::viterbi()) and needs no scaling.
///
/// # Panics
/// If `n_states` is 0, or the lengths do not match.
pub fn max_sum<T: Real>(local: &[T], pairs: &[T], n_states: usize) -> Vec<u32> {
    assert!(
        n_states > 0 && local.len().is_multiple_of(n_states),
        "`local` must consist of whole steps"
    );
    assert_eq!(pairs.len(), n_states * n_states, "`pairs` must have one score per pair");
    let mut steps = local.chunks_exact(n_states);
    let Some(first) = steps.next() else { return Vec::new() };
    let (mut best, mut next) = (first.to_vec(), vec![T::zero(); n_states]);
    let mut origins = vec![0u32; local.len() - n_states];
    for (local, origins) in steps.zip(origins.chunks_exact_mut(n_states)) {
        crate::vectorized(
            #[inline(always)]
            || {
                next.fill(T::neg_infinity());
                for ((i, &best), pairs) in best.iter().enumerate().zip(pairs.chunks_exact(n_states))
                {
                    for ((next, origin), &pair) in next.iter_mut().zip(&mut *origins).zip(pairs) {
                        let sum = best + pair;
                        *origin = if sum > *next { i as u32 } else { *origin };
                        *next = if sum > *next { sum } else { *next };
                    }
                }
                next.iter_mut().zip(local).for_each(|(next, &local)| *next += local);
            },
        );
        std::mem::swap(&mut best, &mut next);
    }
    let larger = |max: (usize, T), (i, &sum): (usize, &T)| if sum > max.1 { (i, sum) } else { max };
    let mut state = best.iter().enumerate().fold((0, T::neg_infinity()), larger).0 as u32;
    let mut path = vec![state];
    for origins in origins.chunks_exact(n_states).rev() {
        state = origins[state as usize];
        path.push(state);
    }
    path.reverse();
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    #[test]
    fn no_path_has_a_larger_sum() {
        let mut rng = Rng::new(2);
        for (n_states, n_steps) in [(1, 3), (2, 6), (3, 5), (4, 1), (3, 0)] {
            let mut draw = |n: usize| (0..n).map(|_| 4.0 * rng.normal()).collect::<Vec<f64>>();
            let (local, pairs) = (draw(n_states * n_steps), draw(n_states * n_states));
            let sum = |path: &[u32]| -> f64 {
                let own = path.iter().enumerate().map(|(t, &i)| local[t * n_states + i as usize]);
                let both = path.windows(2).map(|p| pairs[p[0] as usize * n_states + p[1] as usize]);
                own.sum::<f64>() + both.sum::<f64>()
            };
            let found = max_sum(&local, &pairs, n_states);
            assert_eq!(found.len(), n_steps);
            for code in 0..n_states.pow(n_steps as u32) {
                let state = |t: usize| (code / n_states.pow(t as u32) % n_states) as u32;
                let path: Vec<u32> = (0..n_steps).map(state).collect();
                assert!(sum(&path) <= sum(&found) + 1e-12, "{path:?} is better than {found:?}");
            }
        }
    }

    #[test]
    fn ties_go_to_the_smallest_state() {
        assert_eq!(max_sum(&[0.0; 6], &[0.0; 4], 2), [0, 0, 0]);
    }
}
