//! The length of a gradient, and its limit.

use latens_math::Real;
use latens_math::linalg::Par;
use latens_math::rows::sum_chunks;

/// How many squares are summed by one task.
const CHUNK: usize = 1 << 15;

/// How many partial sums run side by side, as the compiler may not reorder additions.
const LANES: usize = 16;

/// √(Σ_i g_i²), summed in double precision; not a number if one of them is none.
///
/// The sum is made of fixed parts, so that it does not depend on the number of threads.
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

/// What to multiply a gradient of this norm by, so that it is at most `max_norm` long
/// (Pascanu, Mikolov and Bengio 2013).
pub fn clip_factor(norm: f64, max_norm: f64) -> f64 {
    if norm > max_norm { max_norm / norm } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exam::in_pools;

    #[test]
    fn the_norm_is_its_definition() {
        assert_eq!(norm(&[3.0f32, 4.0]), 5.0);
        assert_eq!(norm::<f64>(&[]), 0.0);
        let long = vec![0.5f32; 1_000_000];
        assert!((norm(&long) - 500.0).abs() < 1e-9);
        assert!(norm(&[1.0, f32::NAN]).is_nan());
    }

    #[test]
    fn threads_change_nothing() {
        let numbers: Vec<f32> = (0..200_000).map(|i| (i as f32).sin()).collect();
        in_pools(|_| norm(&numbers));
    }

    #[test]
    fn only_long_gradients_are_shortened() {
        assert_eq!(clip_factor(10.0, 5.0), 0.5);
        assert_eq!(clip_factor(4.0, 5.0), 1.0);
    }
}
