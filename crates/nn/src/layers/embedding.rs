//! Tables of vectors.

use crate::tensors::fill_normal;
use crate::tensors::{Layout, WeightId};
use latens_math::linalg::{MatMut, MatRef, Par};
use latens_math::rows::{for_each_chunk, row, row_mut, rows_per_chunk};
use latens_math::{Real, Rng};

/// Number of columns per task of a scatter.
const COLUMNS: usize = 32;

/// A table of n vectors of length `dim`, looked up by index.
#[derive(Clone, Copy, Debug)]
pub struct Embedding {
    table: WeightId,
}

impl Embedding {
    /// Adds a table named `name`.
    pub fn new(layout: &mut Layout, name: &str, n: usize, dim: usize) -> Embedding {
        Embedding { table: layout.add(name, &[n, dim]) }
    }

    /// Weights of the table.
    pub fn table(&self) -> WeightId {
        self.table
    }

    /// Length of a vector.
    pub fn dim(&self) -> usize {
        self.table.n_cols()
    }

    /// Draws all values from the standard normal distribution.
    pub fn init<T: Real>(&self, weights: &mut [T], rng: &mut Rng) {
        fill_normal(self.table.of_mut(weights), 1.0, rng);
    }

    /// Copies the vector of each index to a row of `out`.
    pub fn forward<T: Real>(&self, weights: &[T], idxs: &[u32], out: MatMut<'_, T>, par: Par) {
        gather_rows(self.table.mat(weights), idxs, out, par);
    }

    /// Adds each row of `d_out` to the gradient of the vector it was copied from.
    pub fn backward<T: Real>(
        &self,
        idxs: &[u32],
        d_out: MatRef<'_, T>,
        gradient: &mut [T],
        par: Par,
    ) {
        scatter_add_rows(d_out, idxs, self.table.mat_mut(gradient), par);
    }
}

/// Copies rows of a table: out_i = table_{idxs(i)}.
///
/// # Panics
/// If an index is out of range, or `out` does not have one row per index.
pub fn gather_rows<T: Real>(table: MatRef<'_, T>, idxs: &[u32], out: MatMut<'_, T>, par: Par) {
    assert_eq!(out.nrows(), idxs.len(), "there must be one row per index");
    let size = rows_per_chunk(table.ncols());
    for_each_chunk((out, idxs), size, par, |(mut out, idxs)| {
        for (i, &idx) in idxs.iter().enumerate() {
            row_mut(&mut out, i).copy_from_slice(row(table, idx as usize));
        }
    });
}

/// Computes table_{idxs(i)} += rows_i for all i, the derivative of [`gather_rows`]. Indices may repeat.
///
/// Threads work on different columns and add the rows in order, so the sums do not depend on the number of threads.
///
/// # Panics
/// If an index is out of range, or there is not one row per index.
pub fn scatter_add_rows<T: Real>(
    rows: MatRef<'_, T>,
    idxs: &[u32],
    table: MatMut<'_, T>,
    par: Par,
) {
    assert_eq!(rows.nrows(), idxs.len(), "there must be one row per index");
    for_each_chunk(
        (table.transpose_mut(), rows.transpose()),
        COLUMNS,
        par,
        #[inline(always)]
        |(table, rows): (MatMut<'_, T>, MatRef<'_, T>)| {
            let (mut table, rows) = (table.transpose_mut(), rows.transpose());
            for (i, &idx) in idxs.iter().enumerate() {
                let total = row_mut(&mut table, idx as usize);
                total.iter_mut().zip(row(rows, i)).for_each(|(total, &value)| *total += value);
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{LayerCase, Outcome, buffer, check_layer, check_threads};

    struct Case {
        idxs: Vec<u32>,
        n: usize,
        dim: usize,
    }

    impl LayerCase for Case {
        fn sizes(&self) -> [usize; 3] {
            [self.n * self.dim, 0, self.idxs.len() * self.dim]
        }

        fn run<T: Real>(&self, weights: &[T], _: &[T], d_out: &[T], par: Par) -> Outcome<T> {
            let layer = Embedding::new(&mut Layout::new(), "embedding", self.n, self.dim);
            let d_out = buffer(d_out, self.idxs.len(), self.dim);
            let mut out = d_out.clone();
            layer.forward(weights, &self.idxs, out.view_mut(), par);
            let mut outcome = Outcome::new(self, out.values());
            layer.backward(&self.idxs, d_out.view(), &mut outcome.gradient, par);
            outcome
        }
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        check_layer(&Case { idxs: vec![2, 0, 2, 4], n: 5, dim: 3 });
        check_layer(&Case { idxs: vec![], n: 5, dim: 3 });
        let idxs = (0..1000).map(|i| i * i % 77).collect();
        check_threads(&Case { idxs, n: 77, dim: 100 });
    }

    #[test]
    fn rows_are_copied() {
        let case = Case { idxs: vec![1, 1, 0], n: 2, dim: 2 };
        let out = case.run(&[1.0, 2.0, 3.0, 4.0], &[], &[0.0; 6], Par::Seq).out;
        assert_eq!(out, [3.0, 4.0, 3.0, 4.0, 1.0, 2.0]);
    }
}
