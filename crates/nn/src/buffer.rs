//! Memory for activations that is used again and again.

use latens_math::Real;
use latens_math::linalg::{MatMut, MatRef};

/// A row-major matrix whose memory is kept when its size changes, so that training steps do not
/// allocate.
#[derive(Clone, Debug, Default)]
pub struct Buffer<T> {
    values: Vec<T>,
    n_rows: usize,
    n_cols: usize,
}

impl<T: Real> Buffer<T> {
    /// A matrix of no rows.
    pub fn new() -> Buffer<T> {
        Buffer { values: vec![], n_rows: 0, n_cols: 0 }
    }

    /// Changes the size. What the matrix then holds is not specified.
    pub fn resize(&mut self, n_rows: usize, n_cols: usize) {
        self.values.resize(n_rows * n_cols, T::zero());
        (self.n_rows, self.n_cols) = (n_rows, n_cols);
    }

    /// Changes the size and sets every number to zero.
    pub fn resize_zeroed(&mut self, n_rows: usize, n_cols: usize) {
        self.resize(n_rows, n_cols);
        self.values.fill(T::zero());
    }

    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// The number of columns.
    pub fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// All numbers, row after row.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// All numbers, row after row, to be written.
    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.values
    }

    /// The matrix.
    pub fn view(&self) -> MatRef<'_, T> {
        MatRef::from_row_major_slice(&self.values, self.n_rows, self.n_cols)
    }

    /// The matrix, to be written.
    pub fn view_mut(&mut self) -> MatMut<'_, T> {
        MatMut::from_row_major_slice_mut(&mut self.values, self.n_rows, self.n_cols)
    }
}
