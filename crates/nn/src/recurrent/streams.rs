//! Parallel streams of steps, and functions that recurrent layers share.

use latens_math::Real;
use latens_math::linalg::{MatMut, MatRef, Par};
use latens_math::rows::{for_each_chunk, rows_per_chunk};
use std::ops::Range;

/// Sequences that are processed in parallel. Rows are ordered by step, with one row per stream in each step.
#[derive(Clone, Copy, Debug)]
pub struct Streams<'a> {
    /// Number of streams.
    pub n: usize,
    /// For each row, whether its stream is reset before it; empty if no stream is ever reset.
    pub fresh: &'a [bool],
}

impl Streams<'_> {
    /// Number of steps in `n_rows` rows.
    ///
    /// # Panics
    /// If the rows do not form whole steps, or `fresh` is neither empty nor one flag per row.
    pub(crate) fn n_steps(&self, n_rows: usize) -> usize {
        assert!(n_rows.is_multiple_of(self.n.max(1)), "every step must have one row per stream");
        assert!(
            self.fresh.is_empty() || self.fresh.len() == n_rows,
            "`fresh` must be empty or have one flag per row"
        );
        n_rows / self.n.max(1)
    }

    /// Range of the values of a step in rows of length `dim`.
    pub(crate) fn place(&self, step: usize, dim: usize) -> Range<usize> {
        step * self.n * dim..(step + 1) * self.n * dim
    }

    /// Sets the rows of `values` to zero whose streams are reset in this step.
    pub(crate) fn forget<T: Real>(&self, step: usize, values: &mut [T], dim: usize) {
        self.forget_some(step, 0, values, dim);
    }

    /// Does the same as [`Streams::forget`] for the rows of some streams, from the stream `first` on.
    pub(crate) fn forget_some<T: Real>(
        &self,
        step: usize,
        first: usize,
        values: &mut [T],
        dim: usize,
    ) {
        let Some(fresh) = self.fresh.get(step * self.n + first..(step + 1) * self.n) else {
            return;
        };
        for (row, _) in values.chunks_exact_mut(dim).zip(fresh).filter(|(_, fresh)| **fresh) {
            row.fill(T::zero());
        }
    }
}

/// A bounded activation function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Squash {
    /// The hyperbolic tangent.
    Tanh,
    /// 1/(1 + e^{−a}).
    Sigmoid,
}

impl Squash {
    #[inline(always)]
    pub(crate) fn of<T: Real>(self, a: T) -> T {
        match self {
            Squash::Tanh => tanh(a),
            Squash::Sigmoid => sigmoid(a),
        }
    }

    /// Returns the derivative where the value is y.
    #[inline(always)]
    pub(crate) fn slope<T: Real>(self, y: T) -> T {
        match self {
            Squash::Tanh => T::one() - y * y,
            Squash::Sigmoid => y * (T::one() - y),
        }
    }
}

/// tanh a = 1 − 2/(e^{2a} + 1).
#[inline(always)]
pub(crate) fn tanh<T: Real>(a: T) -> T {
    let two = T::of(2.0);
    T::one() - two / ((two * a).exp_of() + T::one())
}

#[inline(always)]
pub(crate) fn sigmoid<T: Real>(a: T) -> T {
    T::one() / ((-a).exp_of() + T::one())
}

/// Borrows values as a matrix with rows of length `dim`.
pub(crate) fn rows_of<T>(values: &[T], dim: usize) -> MatRef<'_, T> {
    MatRef::from_row_major_slice(values, values.len() / dim, dim)
}

pub(crate) fn rows_of_mut<T>(values: &mut [T], dim: usize) -> MatMut<'_, T> {
    let n_rows = values.len() / dim;
    MatMut::from_row_major_slice_mut(values, n_rows, dim)
}

/// Calls `f` with corresponding values of a and b on the threads of `par`.
pub(crate) fn for_each_pair<T: Real>(a: &mut [T], b: &[T], par: Par, f: impl Fn(&mut T, T) + Sync) {
    for_each_chunk(
        (a, b),
        rows_per_chunk(1),
        par,
        #[inline(always)]
        |(a, b): (&mut [T], &[T])| a.iter_mut().zip(b).for_each(|(a, &b)| f(a, b)),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activations_agree_with_the_standard_library() {
        for i in -400..=400 {
            let a = f64::from(i) / 20.0;
            assert!((tanh(a) - a.tanh()).abs() < 1e-14);
            assert!((f64::from(tanh(a as f32)) - a.tanh()).abs() < 1e-6);
            assert!((sigmoid(a) - 1.0 / (1.0 + (-a).exp())).abs() < 1e-14);
            let (y, h) = (Squash::Sigmoid.of(a), 1e-6);
            let measured = (Squash::Sigmoid.of(a + h) - Squash::Sigmoid.of(a - h)) / (2.0 * h);
            assert!((Squash::Sigmoid.slope(y) - measured).abs() < 1e-9);
        }
        assert!(sigmoid(-200f32) < 1e-30 && sigmoid(200f32) == 1.0);
    }

    #[test]
    fn fresh_streams_are_reset() {
        let streams = Streams { n: 2, fresh: &[false, true, true, false] };
        assert_eq!((streams.n_steps(4), streams.place(1, 3)), (2, 6..12));
        let mut values = [1.0, 2.0, 3.0, 4.0];
        streams.forget(0, &mut values, 2);
        assert_eq!(values, [1.0, 2.0, 0.0, 0.0]);
        Streams { n: 2, fresh: &[] }.forget(0, &mut values, 2);
        assert_eq!(values, [1.0, 2.0, 0.0, 0.0]);
    }
}
