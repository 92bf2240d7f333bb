//! Sizes of matrices.

/// Size of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
}

/// Sizes of a matrix product: n × k times k × m.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProductShape {
    /// Number of rows of the product and of its first factor.
    pub n: usize,
    /// Number of columns of the product and of its second factor.
    pub m: usize,
    /// Number of columns of the first factor, and of rows of the second.
    pub k: usize,
}
