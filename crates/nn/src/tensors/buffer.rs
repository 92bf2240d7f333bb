//! Reusable memory for activations.

use latens_math::Real;
use latens_math::linalg::{MatMut, MatRef};

/// A row-major matrix that keeps its memory when its size changes, so that training steps do not allocate.
#[derive(Clone, Debug, Default)]
pub struct Buffer<T> {
    values: Vec<T>,
    n_rows: usize,
    n_cols: usize,
}

impl<T: Real> Buffer<T> {
    /// Creates an empty matrix.
    pub fn new() -> Buffer<T> {
        Buffer { values: vec![], n_rows: 0, n_cols: 0 }
    }

    /// Changes the size. The values are unspecified afterwards.
    pub fn resize(&mut self, n_rows: usize, n_cols: usize) {
        self.values.resize(n_rows * n_cols, T::zero());
        (self.n_rows, self.n_cols) = (n_rows, n_cols);
    }

    /// Changes the size and sets all values to zero.
    pub fn resize_zeroed(&mut self, n_rows: usize, n_cols: usize) {
        self.resize(n_rows, n_cols);
        self.values.fill(T::zero());
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of columns.
    pub fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// Values in row-major order.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Mutable values in row-major order.
    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.values
    }

    /// Borrows the matrix.
    pub fn view(&self) -> MatRef<'_, T> {
        MatRef::from_row_major_slice(&self.values, self.n_rows, self.n_cols)
    }

    /// Mutably borrows the matrix.
    pub fn view_mut(&mut self) -> MatMut<'_, T> {
        MatMut::from_row_major_slice_mut(&mut self.values, self.n_rows, self.n_cols)
    }
}
