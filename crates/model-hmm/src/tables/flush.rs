//! Flushes tiny values to zero. Products of them would be subnormal numbers, which slow processors down a
//! hundredfold.

use latens_math::Real;

/// Smaller transitions are set to zero if every state may emit every word. A general matrix product then sums them
/// up, where partial sums could become subnormal; other transitions outweigh them.
pub(crate) const SMALLEST_TRANSITION: f64 = 1e-20;

/// Smaller derivatives are set to zero. The derivatives of a batch add up to about its number of tokens.
const SMALLEST_DERIVATIVE: f64 = 1e-20;

/// Sets transitions below [`SMALLEST_TRANSITION`] to zero.
pub(crate) fn flush_transitions<T: Real>(row: &mut [T]) {
    let smallest = T::of(SMALLEST_TRANSITION);
    row.iter_mut().for_each(|a| *a = if *a < smallest { T::zero() } else { *a });
}

/// Zero for a derivative below 10⁻²⁰ in absolute value.
#[inline(always)]
pub(crate) fn flush_derivative<T: Real>(derivative: T) -> T {
    let smallest = T::of(SMALLEST_DERIVATIVE);
    let is_tiny = (derivative < smallest) & (derivative > -smallest);
    if is_tiny { T::zero() } else { derivative }
}
