//! Dense row-major matrices for results that callers read.

use std::ops::{Index, IndexMut};

/// A dense matrix, row-major: row `i` is `as_slice()[i * n_columns..][..n_columns]`.
///
/// ```
/// use latens_math::Matrix;
///
/// let posterior = Matrix::from_vec(/* n_rows */ 2, /* n_columns */ 3, vec![0.1, 0.2, 0.7, 1.0, 0.0, 0.0]);
/// assert_eq!(posterior.row(1), [1.0, 0.0, 0.0]);
/// assert_eq!(posterior[(0, 2)], 0.7);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix<T> {
    n_rows: usize,
    n_columns: usize,
    values: Vec<T>,
}

impl<T> Matrix<T> {
    /// A matrix of these values, row by row.
    ///
    /// # Panics
    /// If there are not `n_rows * n_columns` values.
    pub fn from_vec(n_rows: usize, n_columns: usize, values: Vec<T>) -> Matrix<T> {
        let n_values = values.len();
        assert_eq!(
            n_rows * n_columns,
            n_values,
            "{n_values} values for {n_rows} rows and {n_columns} columns"
        );
        Matrix { n_rows, n_columns, values }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of columns.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// A row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row_idx: usize) -> &[T] {
        assert!(row_idx < self.n_rows, "row {row_idx} of {}", self.n_rows);
        &self.values[row_idx * self.n_columns..][..self.n_columns]
    }

    /// All rows in order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[T]> {
        (0..self.n_rows).map(|row_idx| self.row(row_idx))
    }

    /// All values, row by row.
    pub fn as_slice(&self) -> &[T] {
        &self.values
    }

    /// All values, row by row.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.values
    }

    /// All values, row by row, without a copy.
    pub fn into_vec(self) -> Vec<T> {
        self.values
    }
}

impl<T: Clone + Default> Matrix<T> {
    /// A matrix of zeros.
    pub fn zeros(n_rows: usize, n_columns: usize) -> Matrix<T> {
        Matrix { n_rows, n_columns, values: vec![T::default(); n_rows * n_columns] }
    }
}

impl<T> Index<(usize, usize)> for Matrix<T> {
    type Output = T;

    fn index(&self, (row_idx, column_idx): (usize, usize)) -> &T {
        &self.row(row_idx)[column_idx]
    }
}

impl<T> IndexMut<(usize, usize)> for Matrix<T> {
    fn index_mut(&mut self, (row_idx, column_idx): (usize, usize)) -> &mut T {
        assert!(row_idx < self.n_rows && column_idx < self.n_columns, "no such place");
        &mut self.values[row_idx * self.n_columns + column_idx]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_columns_and_indices_agree() {
        let mut matrix = Matrix::from_vec(3, 2, (0..6).collect());
        assert_eq!((matrix.n_rows(), matrix.n_columns()), (3, 2));
        assert!(matrix.rows().eq([[0, 1], [2, 3], [4, 5]].iter().map(|row| &row[..])));
        matrix[(2, 0)] = 9;
        assert_eq!((matrix[(2, 0)], matrix[(1, 1)]), (9, 3));
        assert_eq!(matrix.into_vec(), [0, 1, 2, 3, 9, 5]);
        assert_eq!(Matrix::<f32>::zeros(0, 4).rows().len(), 0);
    }

    #[test]
    #[should_panic(expected = "5 values for 3 rows and 2 columns")]
    fn a_wrong_number_of_values_is_refused() {
        Matrix::from_vec(3, 2, vec![0; 5]);
    }
}
