//! The norm of a gradient, and gradient clipping.

use crate::tensors::SparseRows;
use latens_math::Real;
use latens_math::linalg::Par;
use latens_math::rows::sum_chunks;
use std::ops::Range;

/// Number of values per task.
const CHUNK: usize = 1 << 15;

/// Number of independent partial sums, which the compiler vectorizes.
const LANES: usize = 16;

/// Computes √(Σ_i g_i²) in double precision; NaN propagates.
///
/// The result does not depend on the number of threads.
pub fn norm<T: Real>(gradient: &[T]) -> f64 {
    sparse_norm(gradient, &SparseRows::default())
}

/// Computes the [norm] of a gradient without reading most of its zeros.
pub fn sparse_norm<T: Real>(gradient: &[T], sparse: &SparseRows) -> f64 {
    sum_chunks(
        (gradient, 0..gradient.len()),
        CHUNK,
        Par::rayon(0),
        #[inline(always)]
        |(chunk, places): (&[T], Range<usize>)| {
            let (mut sums, mut n_done) = ([0.0; LANES], 0);
            for (part, is_zero) in sparse.parts(places.clone()) {
                // Zeros do not change the sums, so that some of them may be added to complete a group.
                let begin = ((part.start - places.start) / LANES * LANES).max(n_done);
                let end = (part.end - places.start).next_multiple_of(LANES).min(chunk.len());
                if !is_zero && begin < end {
                    add_squares(&mut sums, &chunk[begin..end]);
                    n_done = end;
                }
            }
            sums.iter().sum()
        },
    )
    .sqrt()
}

#[inline(always)]
fn add_squares<T: Real>(sums: &mut [f64; LANES], numbers: &[T]) {
    for numbers in numbers.chunks(LANES) {
        for (sum, x) in sums.iter_mut().zip(numbers) {
            *sum += x.wide() * x.wide();
        }
    }
}

/// Returns the factor that reduces a gradient of the given norm to at most `max_norm` (Pascanu, Mikolov and Bengio
/// 2013).
pub fn clip_factor(norm: f64, max_norm: f64) -> f64 {
    if norm > max_norm { max_norm / norm } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;
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
    fn the_norm_of_sparse_rows_is_that_of_all_numbers() {
        for width in [1, 7, 16, 300] {
            let mut layout = Layout::new();
            layout.add("before", &[40_003]);
            let table = layout.add("table", &[300, width]);
            layout.add("after", &[33]);
            let (mut sparse, rows) = (SparseRows::new(table), [3, 4, 9, 150, 299]);
            let mut gradient: Vec<f32> = (0..layout.len()).map(|i| (i as f32).sin()).collect();
            gradient[table.range()].fill(0.0);
            sparse.restart(&mut gradient, &rows);
            for &row in &rows {
                let begin = table.range().start + row as usize * width;
                gradient[begin..begin + width].fill(0.3);
            }
            assert_eq!(sparse_norm(&gradient, &sparse), norm(&gradient));
        }
    }

    #[test]
    fn only_long_gradients_are_shortened() {
        assert_eq!(clip_factor(10.0, 5.0), 0.5);
        assert_eq!(clip_factor(4.0, 5.0), 1.0);
    }
}
