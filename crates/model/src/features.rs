//! Sparse feature rows, produced by encoders and consumed by tasks.

use crate::fit::DeviceError;
use latens_corpus::WordId;

/// Sparse feature rows in compressed sparse row (CSR) layout, with one row per token.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureRows {
    offsets: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f32>,
}

impl Default for FeatureRows {
    fn default() -> Self {
        FeatureRows { offsets: vec![0], columns: Vec::new(), values: Vec::new() }
    }
}

impl FeatureRows {
    /// Creates an empty collection of rows.
    pub fn new() -> Self {
        FeatureRows::default()
    }

    /// Appends a row with the given column–value pairs and zeros elsewhere.
    pub fn push_sparse(&mut self, entries: impl IntoIterator<Item = (u32, f32)>) {
        for (column, value) in entries {
            self.columns.push(column);
            self.values.push(value);
        }
        self.offsets.push(self.columns.len());
    }

    /// Appends a row with a value in every column.
    ///
    /// # Panics
    /// If there are more than 2³² columns.
    pub fn push_dense(&mut self, values: &[f32]) {
        let n_columns = u32::try_from(values.len()).expect("fewer than 2^32 columns");
        self.columns.extend(0..n_columns);
        self.values.extend_from_slice(values);
        self.offsets.push(self.columns.len());
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The columns and values of a row, in insertion order.
    ///
    /// # Panics
    /// If `row_idx` is out of range.
    pub fn row(&self, row_idx: usize) -> (&[u32], &[f32]) {
        let range = self.offsets[row_idx]..self.offsets[row_idx + 1];
        (&self.columns[range.clone()], &self.values[range])
    }

    /// Iterates over all rows.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u32], &[f32])> {
        (0..self.len()).map(|i| self.row(i))
    }

    /// Start of each row in [`FeatureRows::columns`], followed by the end of the last row.
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// Column indices of all rows, concatenated.
    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// Values of all rows, concatenated.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Removes all rows but keeps the allocated memory.
    pub fn clear(&mut self) {
        self.offsets.truncate(1);
        self.columns.clear();
        self.values.clear();
    }
}

/// An encoder that computes on a GPU. It keeps the model there.
pub trait GpuEncoder {
    /// The rows of each of several sentences, those of [`TokenEncoder::encode_all`](crate::TokenEncoder::encode_all) up to
    /// rounding, in memory that does not depend on the number of sentences, apart from the rows.
    fn encode_all(&mut self, sentences: &[&[WordId]]) -> Result<Vec<FeatureRows>, DeviceError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_returned_as_appended() {
        let mut rows = FeatureRows::new();
        rows.push_sparse([(7, 1.0), (2, -0.5)]);
        rows.push_sparse([]);
        rows.push_dense(&[0.0, 3.0]);
        assert_eq!(rows.len(), 3);
        assert_eq!(rows.row(0), (&[7, 2][..], &[1.0, -0.5][..]));
        assert_eq!(rows.row(1), (&[][..], &[][..]));
        assert_eq!(rows.row(2), (&[0, 1][..], &[0.0, 3.0][..]));
        assert_eq!(rows.offsets(), [0, 2, 2, 4]);
        assert_eq!(rows.iter().len(), 3);
    }

    #[test]
    fn cleared_rows_equal_new_rows() {
        let mut rows = FeatureRows::new();
        rows.push_dense(&[1.0]);
        rows.clear();
        assert!(rows.is_empty());
        assert_eq!(rows, FeatureRows::new());
    }
}
