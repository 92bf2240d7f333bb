//! Rectified linear units, fused with the bias and dropout.

use super::dropout::Dropout;
use latens_math::Real;
use latens_math::linalg::{MatMut, MatRef, Par};
use latens_math::rows::{for_each_chunk, row, row_mut, rows_per_chunk};

/// Replaces z by y = D(max(0, z + b)) in each row, where D is dropout, or the identity without it.
pub fn bias_relu<T: Real>(values: MatMut<'_, T>, bias: &[T], dropout: Option<Dropout>, par: Par) {
    let (n_rows, size) = (values.nrows(), rows_per_chunk(bias.len()));
    for_each_chunk(
        (values, 0..n_rows),
        size,
        par,
        #[inline(always)]
        |(mut chunk, row_idxs): (MatMut<'_, T>, _)| {
            for (i, row_idx) in row_idxs.enumerate() {
                let row = row_mut(&mut chunk, i);
                for (value, &b) in row.iter_mut().zip(bias) {
                    let z = *value + b;
                    *value = if z > T::zero() { z } else { T::zero() };
                }
                if let Some(dropout) = dropout {
                    dropout.apply_to_row(row_idx, row);
                }
            }
        },
    );
}

/// Writes ∂L/∂z, given y = D(max(0, z)) and `d_out` = ∂L/∂y.
///
/// y = s z where z > 0 and the unit was kept, with s the scale of dropout (1 without it), and y = 0 elsewhere. The sign
/// of y therefore determines which units pass the gradient: ∂z = s ⟦y > 0⟧ ∂y.
pub fn relu_backward<T: Real>(
    y: MatRef<'_, T>,
    d_out: MatRef<'_, T>,
    scale: T,
    d_z: MatMut<'_, T>,
    par: Par,
) {
    let size = rows_per_chunk(y.ncols());
    for_each_chunk(
        (d_z, d_out, y),
        size,
        par,
        #[inline(always)]
        |(mut d_z, d_out, y): (_, _, MatRef<'_, T>)| {
            for row_idx in 0..y.nrows() {
                let (d_y, y) = (row(d_out, row_idx), row(y, row_idx));
                backward_row(y, d_y, scale, row_mut(&mut d_z, row_idx));
            }
        },
    );
}

/// Computes ∂z of one row.
///
/// It is a separate function because its signature tells the compiler that the slices do not overlap. It selects a
/// factor because selecting a product would compile to an unpredictable branch.
#[inline(always)]
fn backward_row<T: Real>(y: &[T], d_y: &[T], scale: T, d_z: &mut [T]) {
    for ((d_z, &d_y), &y) in d_z.iter_mut().zip(d_y).zip(y) {
        *d_z = d_y * if y > T::zero() { scale } else { T::zero() };
    }
}
