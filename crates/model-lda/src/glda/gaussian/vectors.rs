//! The vectors of types.

/// A vector for each type, in the order of types.
#[derive(Clone, Debug)]
pub(crate) struct TypeVectors {
    dim: usize,
    values: Vec<f32>,
}

impl TypeVectors {
    /// # Panics
    /// If the number of values is not a multiple of the dimension.
    pub(crate) fn new(dim: usize, values: Vec<f32>) -> TypeVectors {
        assert!(dim > 0 && values.len().is_multiple_of(dim), "whole vectors");
        TypeVectors { dim, values }
    }

    pub(crate) fn dim(&self) -> usize {
        self.dim
    }

    /// Number of types.
    pub(crate) fn len(&self) -> usize {
        self.values.len() / self.dim
    }

    pub(crate) fn values(&self) -> &[f32] {
        &self.values
    }

    pub(crate) fn row(&self, token_type: u32) -> &[f32] {
        &self.values[token_type as usize * self.dim..][..self.dim]
    }

    /// The vector of a type in double precision.
    pub(crate) fn get(&self, token_type: u32) -> impl Iterator<Item = f64> + '_ {
        self.row(token_type).iter().map(|&x| f64::from(x))
    }

    /// Adds a type.
    pub(crate) fn push(&mut self, vector: &[f32]) {
        assert_eq!(vector.len(), self.dim, "the vector must have the dimension of the others");
        self.values.extend_from_slice(vector);
    }

    /// The mean of all vectors and the mean variance of their coordinates.
    pub(crate) fn moments(&self) -> (Vec<f64>, f64) {
        let n = self.len().max(1) as f64;
        let mut mean = vec![0.0; self.dim];
        for row in self.values.chunks_exact(self.dim) {
            mean.iter_mut().zip(row).for_each(|(m, &x)| *m += f64::from(x));
        }
        mean.iter_mut().for_each(|m| *m /= n);
        let rows = self.values.chunks_exact(self.dim);
        let squares: f64 = rows
            .map(|row| row.iter().zip(&mean).map(|(&x, m)| (f64::from(x) - m).powi(2)).sum::<f64>())
            .sum();
        let variance = squares / (n * self.dim as f64);
        (mean, variance)
    }
}
