//! Compressed sparse rows.

/// A sparse matrix in compressed row format.
///
/// The columns and values of row i are stored from `offsets[i]` up to `offsets[i + 1]`. Columns are strictly ascending
/// within a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Csr<T> {
    n_cols: usize,
    offsets: Vec<u64>,
    columns: Vec<u32>,
    values: Vec<T>,
}

impl<T> Csr<T> {
    /// Creates a matrix from its arrays. The number of rows is one less than the number of offsets.
    ///
    /// # Errors
    /// Returns a description if the offsets do not ascend from 0 to the number of values, or if the columns of a row
    /// are not strictly ascending and below `n_cols`.
    pub fn new(
        n_cols: usize,
        offsets: Vec<u64>,
        columns: Vec<u32>,
        values: Vec<T>,
    ) -> Result<Csr<T>, &'static str> {
        check(n_cols, &offsets, &columns)?;
        if values.len() != columns.len() {
            return Err("the numbers of values and columns differ");
        }
        Ok(Csr { n_cols, offsets, columns, values })
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of columns.
    pub fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// Number of stored values.
    pub fn nnz(&self) -> usize {
        self.values.len()
    }

    /// Start of each row in [`Csr::columns`], followed by the end of the last row.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// Column of each stored value in row-major order.
    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// Stored values in row-major order.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Returns the columns and values of one row.
    ///
    /// # Panics
    /// If `row_idx` is out of range.
    #[inline]
    pub fn row(&self, row_idx: usize) -> (&[u32], &[T]) {
        let range = self.offsets[row_idx] as usize..self.offsets[row_idx + 1] as usize;
        (&self.columns[range.clone()], &self.values[range])
    }
}

impl<T: Copy> Csr<T> {
    /// Replaces every stored value by `value(row, column, old value)`.
    pub fn replace_values(&mut self, value: impl Fn(usize, usize, T) -> T) {
        for row_idx in 0..self.n_rows() {
            let range = self.offsets[row_idx] as usize..self.offsets[row_idx + 1] as usize;
            for (&column, old) in self.columns[range.clone()].iter().zip(&mut self.values[range]) {
                *old = value(row_idx, column as usize, *old);
            }
        }
    }

    /// Returns the transposed matrix.
    ///
    /// # Panics
    /// If there are more than 2³² rows, because column indices have 32 bits.
    pub fn transpose(&self) -> Csr<T> {
        assert!(self.n_rows() <= 1 << 32, "column indices have 32 bits");
        let mut offsets = vec![0; self.n_cols + 1];
        for &column in &self.columns {
            offsets[column as usize + 1] += 1;
        }
        for i in 1..offsets.len() {
            offsets[i] += offsets[i - 1];
        }
        let Some(&any) = self.values.first() else {
            return Csr { n_cols: self.n_rows(), offsets, columns: vec![], values: vec![] };
        };
        // Rows are visited in order, so the new columns ascend within each new row.
        let mut next = offsets.clone();
        let (mut columns, mut values) = (vec![0; self.nnz()], vec![any; self.nnz()]);
        for row_idx in 0..self.n_rows() {
            let (row_columns, row_values) = self.row(row_idx);
            for (&column, &value) in row_columns.iter().zip(row_values) {
                let at = &mut next[column as usize];
                columns[*at as usize] = row_idx as u32;
                values[*at as usize] = value;
                *at += 1;
            }
        }
        Csr { n_cols: self.n_rows(), offsets, columns, values }
    }
}

fn check(n_cols: usize, offsets: &[u64], columns: &[u32]) -> Result<(), &'static str> {
    if offsets.first() != Some(&0)
        || offsets.last() != Some(&(columns.len() as u64))
        || offsets.windows(2).any(|pair| pair[0] > pair[1])
    {
        return Err("the row offsets do not ascend from 0 to the number of values");
    }
    for pair in offsets.windows(2) {
        let row = &columns[pair[0] as usize..pair[1] as usize];
        if row.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err("the columns of a row are not strictly ascending");
        }
        if row.last().is_some_and(|&last| last as usize >= n_cols) {
            return Err("a column is not below the number of columns");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// | 0 5 0 |
    /// | 0 0 0 |
    /// | 7 0 9 |
    fn example() -> Csr<i32> {
        Csr::new(3, vec![0, 1, 1, 3], vec![1, 0, 2], vec![5, 7, 9]).unwrap()
    }

    fn dense(matrix: &Csr<i32>) -> Vec<Vec<i32>> {
        let mut rows = vec![vec![0; matrix.n_cols()]; matrix.n_rows()];
        for (i, row) in rows.iter_mut().enumerate() {
            let (columns, values) = matrix.row(i);
            columns.iter().zip(values).for_each(|(&j, &value)| row[j as usize] = value);
        }
        rows
    }

    fn sparse(rows: &[Vec<i32>], n_cols: usize) -> Csr<i32> {
        let (mut offsets, mut columns, mut values) = (vec![0], vec![], vec![]);
        for row in rows {
            for (j, &value) in row.iter().enumerate().filter(|&(_, &value)| value != 0) {
                columns.push(j as u32);
                values.push(value);
            }
            offsets.push(columns.len() as u64);
        }
        Csr::new(n_cols, offsets, columns, values).unwrap()
    }

    #[test]
    fn rows_hold_the_given_values() {
        assert_eq!(dense(&example()), [[0, 5, 0], [0, 0, 0], [7, 0, 9]]);
        assert_eq!(example().nnz(), 3);
    }

    #[test]
    fn values_are_replaced_in_place() {
        let mut matrix = example();
        matrix.replace_values(|row, column, value| 100 * row as i32 + 10 * column as i32 + value);
        assert_eq!(dense(&matrix), [[0, 15, 0], [0, 0, 0], [207, 0, 229]]);
    }

    #[test]
    fn inconsistent_arrays_are_rejected() {
        let check = |offsets: &[u64], columns: &[u32]| check(3, offsets, columns);
        assert!(check(&[0, 2], &[0, 2]).is_ok());
        assert!(check(&[0], &[]).is_ok());
        assert!(check(&[], &[]).is_err());
        assert!(check(&[1, 2], &[0, 2]).is_err());
        assert!(check(&[0, 3], &[0, 2]).is_err());
        assert!(check(&[0, 3, 2], &[0, 2]).is_err());
        assert!(check(&[0, 2], &[0, 3]).is_err());
        assert!(check(&[0, 2], &[2, 0]).is_err());
        assert!(check(&[0, 2], &[1, 1]).is_err());
        assert!(Csr::new(3, vec![0, 1], vec![0], vec![1, 2]).is_err());
    }

    proptest! {
        #[test]
        fn transposition_exchanges_rows_and_columns(
            n_cols in 1_usize..6,
            cells in prop::collection::vec(0..3, 0..40),
        ) {
            let rows: Vec<Vec<i32>> = cells.chunks_exact(n_cols).map(<[i32]>::to_vec).collect();
            let matrix = sparse(&rows, n_cols);
            let transposed = dense(&matrix.transpose());
            for (i, row) in rows.iter().enumerate() {
                for (j, &value) in row.iter().enumerate() {
                    prop_assert_eq!(transposed[j][i], value);
                }
            }
            prop_assert_eq!(matrix.transpose().transpose(), matrix);
        }
    }
}
