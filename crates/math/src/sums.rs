//! Sums over a slice, in an order that leaves the compiler free to use vectors.

use latens_math::Real;

/// How many partial sums run side by side, as the compiler may not reorder additions.
const LANES: usize = 64;

/// Σ_i f(a_i, b_i).
#[inline(always)]
pub(crate) fn sum_of<T: Real>(a: &[T], b: &[T], f: impl Fn(T, T) -> T) -> T {
    let mut sums = [T::zero(); LANES];
    for (a, b) in a.chunks(LANES).zip(b.chunks(LANES)) {
        add_terms(&mut sums, a, b, &f);
    }
    // By halves: one after the other, the additions would wait for each other.
    let mut n = LANES;
    while n > 8 {
        n /= 2;
        let (left, right) = sums.split_at_mut(n);
        left.iter_mut().zip(right).for_each(|(left, right)| *left += *right);
    }
    sums[..8].iter().copied().sum()
}

#[inline(always)]
fn add_terms<T: Real>(sums: &mut [T], a: &[T], b: &[T], f: &impl Fn(T, T) -> T) {
    for ((sum, &a), &b) in sums.iter_mut().zip(a).zip(b) {
        *sum += f(a, b);
    }
}

/// Σ_i a_i.
#[inline(always)]
pub(crate) fn sum<T: Real>(a: &[T]) -> T {
    sum_of(
        a,
        a,
        #[inline(always)]
        |a, _| a,
    )
}

/// Σ_i a_i b_i.
#[inline(always)]
pub(crate) fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    sum_of(
        a,
        b,
        #[inline(always)]
        |a, b| a * b,
    )
}
