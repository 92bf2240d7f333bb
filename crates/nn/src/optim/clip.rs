//! The norm of a gradient, and gradient clipping.

use latens_math::Real;
use latens_math::linalg::Par;
use latens_math::rows::sum_chunks;

/// Number of values per task.
const CHUNK: usize = 1 << 15;

/// Number of independent partial sums, which the compiler vectorizes.
const LANES: usize = 16;

/// Computes √(Σ_i g_i²) in double precision; NaN propagates.
///
/// The result does not depend on the number of threads.
pub fn norm<T: Real>(gradient: &[T]) -> f64 {
    sum_chunks(
        gradient,
        CHUNK,
        Par::rayon(0),
        #[inline(always)]
        |chunk| square_sum(chunk),
    )
    .sqrt()
}

#[inline(always)]
fn square_sum<T: Real>(numbers: &[T]) -> f64 {
    let mut sums = [0.0; LANES];
    for numbers in numbers.chunks(LANES) {
        for (sum, x) in sums.iter_mut().zip(numbers) {
            *sum += x.wide() * x.wide();
        }
    }
    sums.iter().sum()
}

/// Returns the factor that reduces a gradient of the given norm to at most `max_norm` (Pascanu, Mikolov and Bengio
/// 2013).
pub fn clip_factor(norm: f64, max_norm: f64) -> f64 {
    if norm > max_norm { max_norm / norm } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::in_pools;

    #[test]
    fn the_norm_agrees_with_the_definition() {
        assert_eq!(norm(&[3.0f32, 4.0]), 5.0);
        assert_eq!(norm::<f64>(&[]), 0.0);
        let long = vec![0.5f32; 1_000_000];
        assert!((norm(&long) - 500.0).abs() < 1e-9);
        assert!(norm(&[1.0, f32::NAN]).is_nan());
    }

    #[test]
    fn the_result_does_not_depend_on_the_number_of_threads() {
        let numbers: Vec<f32> = (0..200_000).map(|i| (i as f32).sin()).collect();
        in_pools(|_| norm(&numbers));
    }

    #[test]
    fn only_long_gradients_are_shortened() {
        assert_eq!(clip_factor(10.0, 5.0), 0.5);
        assert_eq!(clip_factor(4.0, 5.0), 1.0);
    }
}
