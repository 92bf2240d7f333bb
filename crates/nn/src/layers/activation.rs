//! Activation functions.

use super::relu::relu_backward;
use latens_math::Real;
use latens_math::linalg::{MatMut, MatRef, Par};
use latens_math::rows::{for_each_chunk, row, row_mut, rows_per_chunk};
use serde::{Deserialize, Serialize};

/// An activation function g, applied to each value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// The hyperbolic tangent.
    Tanh,
    /// max(0, ·).
    Relu,
}

impl Activation {
    /// Replaces a by g(a + b).
    ///
    /// tanh a = 1 − 2/(e^{2a} + 1).
    #[inline(always)]
    pub(crate) fn apply<T: Real>(self, values: &mut [T], bias: &[T]) {
        let (one, two) = (T::one(), T::of(2.0));
        for (value, &b) in values.iter_mut().zip(bias) {
            let a = *value + b;
            *value = match self {
                Activation::Tanh => one - two / ((two * a).exp_of() + one),
                Activation::Relu => a.max(T::zero()),
            };
        }
    }

    /// Writes δ = ∂L/∂y g′, with g′ = 1 − y² for the hyperbolic tangent and ⟦y > 0⟧ for ReLU.
    pub(crate) fn backward<T: Real>(
        self,
        y: MatRef<'_, T>,
        d_out: MatRef<'_, T>,
        delta: MatMut<'_, T>,
        par: Par,
    ) {
        if self == Activation::Relu {
            return relu_backward(y, d_out, T::one(), delta, par);
        }
        for_each_chunk(
            (delta, d_out, y),
            rows_per_chunk(y.ncols()),
            par,
            #[inline(always)]
            |(mut delta, d_out, y): (_, _, MatRef<'_, T>)| {
                for i in 0..y.nrows() {
                    multiply_by_slope(row(y, i), row(d_out, i), row_mut(&mut delta, i));
                }
            },
        );
    }
}

#[inline(always)]
fn multiply_by_slope<T: Real>(y: &[T], d_y: &[T], delta: &mut [T]) {
    for ((delta, &d_y), &y) in delta.iter_mut().zip(d_y).zip(y) {
        *delta = d_y * (T::one() - y * y);
    }
}
