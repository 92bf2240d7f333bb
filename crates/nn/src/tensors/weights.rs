//! All weights of a model in one flat vector.
//!
//! Optimizers, the gradient norm, checkpoints and devices see one vector; layers see the matrices in it. The gradient
//! has the same layout.

use latens_math::linalg::{MatMut, MatRef};
use std::ops::Range;

/// Names, shapes and ranges of the weights in the flat vector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    entries: Vec<Entry>,
    len: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    name: String,
    shape: Vec<usize>,
    range: Range<usize>,
}

/// Range and shape of one weight matrix or vector of a [`Layout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightId {
    offset: usize,
    n_rows: usize,
    n_cols: usize,
}

impl Layout {
    /// Creates a layout without weights.
    pub fn new() -> Layout {
        Layout::default()
    }

    /// Appends weights to the end of the vector.
    ///
    /// As a matrix, weights of shape a × b × c … have a rows; weights of one dimension have one row.
    ///
    /// # Panics
    /// If the name is already used: names identify weights in a model file.
    pub fn add(&mut self, name: &str, shape: &[usize]) -> WeightId {
        assert!(self.entries.iter().all(|entry| entry.name != name), "two weights named `{name}`");
        let (n_rows, n_cols) = match shape {
            [n_rows, rest @ ..] if !rest.is_empty() => (*n_rows, rest.iter().product()),
            _ => (1, shape.iter().product()),
        };
        let weight = WeightId { offset: self.len, n_rows, n_cols };
        self.len += weight.len();
        let range = weight.range();
        self.entries.push(Entry { name: name.to_owned(), shape: shape.to_vec(), range });
        weight
    }

    /// Number of weights, which is the length of the flat vector.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no weights.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Iterates over the name, shape and range of all weights in the order of the vector.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &[usize], Range<usize>)> {
        self.entries.iter().map(|entry| (&*entry.name, &*entry.shape, entry.range.clone()))
    }
}

impl WeightId {
    /// Number of rows; 1 for a vector.
    pub fn n_rows(self) -> usize {
        self.n_rows
    }

    /// Number of columns.
    pub fn n_cols(self) -> usize {
        self.n_cols
    }

    /// Number of weights.
    pub fn len(self) -> usize {
        self.n_rows * self.n_cols
    }

    /// Returns whether there are no weights.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Range in the flat vector.
    pub fn range(self) -> Range<usize> {
        self.offset..self.offset + self.len()
    }

    /// Borrows the weights in row-major order.
    pub fn of<T>(self, flat: &[T]) -> &[T] {
        &flat[self.range()]
    }

    /// Mutably borrows the weights in row-major order.
    pub fn of_mut<T>(self, flat: &mut [T]) -> &mut [T] {
        &mut flat[self.range()]
    }

    /// Borrows the weights as a matrix.
    pub fn mat<T>(self, flat: &[T]) -> MatRef<'_, T> {
        MatRef::from_row_major_slice(self.of(flat), self.n_rows, self.n_cols)
    }

    /// Mutably borrows the weights as a matrix.
    pub fn mat_mut<T>(self, flat: &mut [T]) -> MatMut<'_, T> {
        let (n_rows, n_cols) = (self.n_rows, self.n_cols);
        MatMut::from_row_major_slice_mut(self.of_mut(flat), n_rows, n_cols)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_contiguous() {
        let mut layout = Layout::new();
        let a = layout.add("a", &[2, 3]);
        let b = layout.add("b", &[4]);
        let c = layout.add("c", &[2, 2, 2]);
        assert_eq!(layout.len(), 18);
        let flat: Vec<usize> = (0..18).collect();
        assert_eq!(a.mat(&flat)[(1, 0)], 3);
        assert_eq!(b.of(&flat), [6, 7, 8, 9]);
        assert_eq!((b.n_rows(), b.n_cols()), (1, 4));
        assert_eq!((c.n_rows(), c.n_cols()), (2, 4));
        let entries: Vec<_> = layout.entries().collect();
        assert_eq!(entries[2], ("c", &[2, 2, 2][..], 10..18));
    }

    #[test]
    #[should_panic(expected = "two weights named `a`")]
    fn duplicate_names_panic() {
        let mut layout = Layout::new();
        layout.add("a", &[1]);
        layout.add("a", &[1]);
    }
}
