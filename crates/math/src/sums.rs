//! Sums over slices, in an order that lets the compiler vectorize them.

use crate::Real;

/// Computes Σ_i a_i b_i with `LANES` independent partial sums.
///
/// The compiler may not reorder the additions of a single sum, but it vectorizes independent ones. The number of lanes
/// determines the rounding, so it is part of the result; choose 64 for long vectors and 8 for short ones.
#[inline(always)]
pub fn dot<const LANES: usize, T: Real>(a: &[T], b: &[T]) -> T {
    sum_of::<LANES, T>(
        a,
        b,
        #[inline(always)]
        |a, b| a * b,
    )
}

/// Computes Σ_i a_i b_i in double precision with 8 independent partial sums.
#[inline(always)]
pub fn dot_wide<T: Real>(a: &[T], b: &[T]) -> f64 {
    debug_assert_eq!(a.len(), b.len());
    let mut sums = [0.0; 8];
    let ((blocks_a, rest_a), (blocks_b, rest_b)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    for (a, b) in blocks_a.iter().zip(blocks_b) {
        // Whole arrays, which are vectors to the compiler.
        sums = std::array::from_fn(|lane| sums[lane] + a[lane].wide() * b[lane].wide());
    }
    for ((sum, a), b) in sums.iter_mut().zip(rest_a).zip(rest_b) {
        *sum += a.wide() * b.wide();
    }
    sums.iter().sum()
}

/// Computes Σ_i f(a_i, b_i) with `LANES` independent partial sums.
#[inline(always)]
pub fn sum_of<const LANES: usize, T: Real>(a: &[T], b: &[T], f: impl Fn(T, T) -> T) -> T {
    let mut sums = [T::zero(); LANES];
    for (a, b) in a.chunks(LANES).zip(b.chunks(LANES)) {
        add_terms(&mut sums, a, b, &f);
    }
    // Pairwise down to 8: one after the other, the additions would wait for each other.
    let mut n = LANES;
    while n > 8 {
        n /= 2;
        let (left, right) = sums.split_at_mut(n);
        left.iter_mut().zip(right).for_each(|(left, right)| *left += *right);
    }
    sums[..n].iter().copied().sum()
}

#[inline(always)]
fn add_terms<T: Real>(sums: &mut [T], a: &[T], b: &[T], f: &impl Fn(T, T) -> T) {
    for ((sum, &a), &b) in sums.iter_mut().zip(a).zip(b) {
        *sum += f(a, b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dot_products_agree_with_the_definition() {
        for n in [0, 1, 7, 8, 9, 63, 64, 65, 200] {
            // Integers, so that every sum is exact.
            let a: Vec<f32> = (0..n).map(|i| (i % 7) as f32 - 2.0).collect();
            let b: Vec<f32> = (0..n).map(|i| (i % 11) as f32 - 4.0).collect();
            let expected: f32 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
            assert_eq!(dot::<1, _>(&a, &b), expected);
            assert_eq!(dot::<8, _>(&a, &b), expected);
            assert_eq!(dot::<64, _>(&a, &b), expected);
            assert_eq!(dot_wide(&a, &b), f64::from(expected));
        }
    }
}
