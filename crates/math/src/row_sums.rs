//! Weighted sums of rows of a dense matrix: one row of a sparse matrix times a dense one.

use crate::Real;
use pulp::{Simd, WithSimd};

/// Some rows of a dense row-major matrix, each with a weight.
#[derive(Clone, Copy, Debug)]
pub struct WeightedRows<'a, T> {
    /// Which rows.
    pub rows: &'a [u32],
    /// The weight of each.
    pub weights: &'a [T],
    /// The matrix.
    pub matrix: &'a [T],
    /// How many numbers a row of the matrix has.
    pub stride: usize,
    /// The first column of the sum.
    pub column: usize,
}

impl<T: Real> WeightedRows<'_, T> {
    /// out += Σ weight · row, for as many columns as `out` has.
    ///
    /// # Panics
    /// If the rows or columns are not in the matrix, or there are not as many weights as rows.
    #[inline]
    pub fn add_to(self, out: &mut [T]) {
        assert_eq!(self.rows.len(), self.weights.len(), "a weight for each row");
        assert!(self.column + out.len() <= self.stride, "columns of the matrix");
        T::add_rows(self, out);
    }
}

/// [`WeightedRows::add_to`] by its definition.
pub(crate) fn add_rows<T: Real>(rows: WeightedRows<'_, T>, out: &mut [T]) {
    let WeightedRows { matrix, stride, column, .. } = rows;
    for (&row, &weight) in rows.rows.iter().zip(rows.weights) {
        let row = &matrix[row as usize * stride + column..][..out.len()];
        out.iter_mut().zip(row).for_each(|(out, &value)| *out += weight * value);
    }
}

/// The same for single precision: sums stay in registers while the rows pass by.
pub(crate) struct SumOfRows<'a> {
    pub(crate) rows: WeightedRows<'a, f32>,
    pub(crate) out: &'a mut [f32],
}

/// As many vectors of sums as leave registers free for the rest.
const MOST: usize = 14;

impl WithSimd for SumOfRows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let n_vectors = self.out.len() / S::F32_LANES;
        let mut vector = 0;
        while vector < n_vectors {
            // What is left is shared out evenly, so that no pass over the rows is for one vector.
            let left = n_vectors - vector;
            let n = left.div_ceil(left.div_ceil(MOST));
            match n {
                14 => self.pass::<S, 14>(simd, vector),
                13 => self.pass::<S, 13>(simd, vector),
                12 => self.pass::<S, 12>(simd, vector),
                11 => self.pass::<S, 11>(simd, vector),
                10 => self.pass::<S, 10>(simd, vector),
                9 => self.pass::<S, 9>(simd, vector),
                8 => self.pass::<S, 8>(simd, vector),
                7 => self.pass::<S, 7>(simd, vector),
                6 => self.pass::<S, 6>(simd, vector),
                5 => self.pass::<S, 5>(simd, vector),
                4 => self.pass::<S, 4>(simd, vector),
                3 => self.pass::<S, 3>(simd, vector),
                2 => self.pass::<S, 2>(simd, vector),
                _ => self.pass::<S, 1>(simd, vector),
            }
            vector += n;
        }
        let rest = n_vectors * S::F32_LANES;
        let rows = WeightedRows { column: self.rows.column + rest, ..self.rows };
        if rest < self.out.len() {
            add_rows(rows, &mut self.out[rest..]);
        }
    }
}

impl SumOfRows<'_> {
    /// N vectors of sums, from the given one on.
    #[inline(always)]
    fn pass<S: Simd, const N: usize>(&mut self, simd: S, vector: usize) {
        let WeightedRows { rows, weights, matrix, stride, column } = self.rows;
        let first = column + vector * S::F32_LANES;
        let out = &mut self.out[vector * S::F32_LANES..][..N * S::F32_LANES];
        let out: &mut [S::f32s; N] =
            S::as_mut_simd_f32s(out).0.try_into().expect("N vectors of sums");
        let mut sums = *out;
        for (&row, &weight) in rows.iter().zip(weights) {
            let row = &matrix[row as usize * stride + first..][..N * S::F32_LANES];
            let row: &[S::f32s; N] = S::as_simd_f32s(row).0.try_into().expect("N vectors");
            let weight = simd.splat_f32s(weight);
            for n in 0..N {
                sums[n] = simd.mul_add_e_f32s(weight, row[n], sums[n]);
            }
        }
        *out = sums;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    fn check<T: Real>(tolerance: f64) {
        let mut rng = Rng::new(1);
        let mut number = || T::of(rng.uniform() - 0.5);
        for width in [1, 15, 16, 17, 100, 208, 224, 448, 900] {
            let (stride, column) = (width + 5, 3);
            let matrix: Vec<T> = (0..9 * stride).map(|_| number()).collect();
            let rows = [3, 0, 8, 3];
            let weights: Vec<T> = rows.iter().map(|_| number()).collect();
            let start: Vec<T> = (0..width).map(|_| number()).collect();
            let mut out = start.clone();
            WeightedRows { rows: &rows, weights: &weights, matrix: &matrix, stride, column }
                .add_to(&mut out);
            for (j, out) in out.iter().enumerate() {
                let entry = |row: u32| matrix[row as usize * stride + column + j].wide();
                let terms = rows.iter().zip(&weights).map(|(&row, w)| w.wide() * entry(row));
                assert!((out.wide() - start[j].wide() - terms.sum::<f64>()).abs() < tolerance);
            }
        }
    }

    #[test]
    fn sums_are_their_definition() {
        check::<f64>(1e-15);
        check::<f32>(1e-6);
    }

    #[test]
    #[should_panic(expected = "columns of the matrix")]
    fn columns_outside_the_matrix_are_refused() {
        let rows =
            WeightedRows { rows: &[0], weights: &[1.0], matrix: &[1.0; 4], stride: 2, column: 1 };
        rows.add_to(&mut [0.0; 2]);
    }
}
