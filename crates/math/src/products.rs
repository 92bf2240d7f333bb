//! Products of a few rows with a block of a larger matrix, for which a general product is too general: it
//! would spend its time on rearranging a block that is read only once.

use crate::Real;

/// Some rows and columns of a row-major matrix.
#[derive(Clone, Copy, Debug)]
pub struct BlockRef<'a, T> {
    values: &'a [T],
    stride: usize,
    n_rows: usize,
    n_cols: usize,
}

impl<'a, T: Real> BlockRef<'a, T> {
    /// The block of a matrix with `stride` columns that begins at (`row`, `col`).
    ///
    /// # Panics
    /// If the block is not in the matrix.
    pub fn new(
        matrix: &'a [T],
        stride: usize,
        (row, n_rows): (usize, usize),
        (col, n_cols): (usize, usize),
    ) -> BlockRef<'a, T> {
        assert!(col + n_cols <= stride && (row + n_rows) * stride <= matrix.len(), "a block in it");
        BlockRef {
            values: &matrix[(row * stride + col).min(matrix.len())..],
            stride,
            n_rows,
            n_cols,
        }
    }

    #[inline(always)]
    fn row(&self, row: usize) -> &'a [T] {
        &self.values[row * self.stride..][..self.n_cols]
    }

    /// out = left · block, where `left` has rows of as many numbers as the block has rows.
    ///
    /// # Panics
    /// If the sizes do not fit.
    pub fn times_rows(&self, left: &[T], out: &mut [T]) {
        let n = left.len() / self.n_rows.max(1);
        assert_eq!(left.len(), n * self.n_rows, "whole rows");
        assert_eq!(out.len(), n * self.n_cols, "a row for each");
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                let mut rows = 0;
                while rows < n {
                    rows += match n - rows {
                        1 => self.times::<1, 64>(left, out, rows),
                        2 | 3 => self.times::<2, 32>(left, out, rows),
                        _ => self.times::<4, 16>(left, out, rows),
                    };
                }
            },
        );
    }

    /// M rows from `first` on, W columns at a time; returns M.
    #[inline(always)]
    fn times<const M: usize, const W: usize>(
        &self,
        left: &[T],
        out: &mut [T],
        first: usize,
    ) -> usize {
        let left: [&[T]; M] =
            std::array::from_fn(|m| &left[(first + m) * self.n_rows..][..self.n_rows]);
        let mut col = 0;
        while col + W <= self.n_cols {
            let mut sums = [[T::zero(); W]; M];
            for i in 0..self.n_rows {
                let row: &[T; W] = self.row(i)[col..col + W].try_into().expect("W numbers");
                for m in 0..M {
                    let factor = left[m][i];
                    for w in 0..W {
                        sums[m][w] += factor * row[w];
                    }
                }
            }
            for m in 0..M {
                out[(first + m) * self.n_cols + col..][..W].copy_from_slice(&sums[m]);
            }
            col += W;
        }
        for m in 0..M {
            let out = &mut out[(first + m) * self.n_cols + col..(first + m + 1) * self.n_cols];
            out.fill(T::zero());
            for (i, &factor) in left[m].iter().enumerate() {
                out.iter_mut().zip(&self.row(i)[col..]).for_each(|(out, &b)| *out += factor * b);
            }
        }
        M
    }

    /// out = left · blockᵀ, where `left` has rows of as many numbers as the block has columns.
    ///
    /// # Panics
    /// If the sizes do not fit.
    pub fn transposed_times_rows(&self, left: &[T], out: &mut [T]) {
        let n = left.len() / self.n_cols.max(1);
        assert_eq!(left.len(), n * self.n_cols, "whole rows");
        assert_eq!(out.len(), n * self.n_rows, "a row for each");
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                let mut rows = 0;
                while rows < n {
                    rows += match n - rows {
                        1 => self.transposed_times::<1, 4>(left, out, rows),
                        2 | 3 => self.transposed_times::<2, 4>(left, out, rows),
                        _ => self.transposed_times::<4, 2>(left, out, rows),
                    };
                }
            },
        );
    }

    /// M rows from `first` on, R rows of the block at a time; returns M.
    #[inline(always)]
    fn transposed_times<const M: usize, const R: usize>(
        &self,
        left: &[T],
        out: &mut [T],
        first: usize,
    ) -> usize {
        let left: [&[T]; M] =
            std::array::from_fn(|m| &left[(first + m) * self.n_cols..][..self.n_cols]);
        let mut i = 0;
        while i + R <= self.n_rows {
            self.dots::<M, R>(left, i, out, first);
            i += R;
        }
        while i < self.n_rows {
            self.dots::<M, 1>(left, i, out, first);
            i += 1;
        }
        M
    }

    /// The products of M rows with R rows of the block from `i` on.
    #[inline(always)]
    fn dots<const M: usize, const R: usize>(
        &self,
        left: [&[T]; M],
        i: usize,
        out: &mut [T],
        first: usize,
    ) {
        /// How many sums run side by side, as the compiler may not reorder additions.
        const LANES: usize = 8;
        let rows: [&[T]; R] = std::array::from_fn(|r| self.row(i + r));
        let mut sums = [[[T::zero(); LANES]; R]; M];
        let n = self.n_cols / LANES * LANES;
        let mut j = 0;
        while j < n {
            for m in 0..M {
                let a: &[T; LANES] = left[m][j..j + LANES].try_into().expect("some numbers");
                for r in 0..R {
                    let b: &[T; LANES] = rows[r][j..j + LANES].try_into().expect("some numbers");
                    for l in 0..LANES {
                        sums[m][r][l] += a[l] * b[l];
                    }
                }
            }
            j += LANES;
        }
        for m in 0..M {
            for r in 0..R {
                let rest = left[m][n..].iter().zip(&rows[r][n..]).map(|(&a, &b)| a * b);
                out[(first + m) * self.n_rows + i + r] =
                    sums[m][r].iter().copied().chain(rest).sum();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    #[test]
    fn products_are_their_definition() {
        let mut rng = Rng::new(1);
        let mut numbers = |n: usize| -> Vec<f64> { (0..n).map(|_| rng.uniform() - 0.5).collect() };
        for n in 0..8 {
            for (n_rows, n_cols) in [(1, 1), (3, 70), (40, 5), (16, 64), (37, 131)] {
                let (stride, row, col) = (n_cols + 3, 2, 1);
                let matrix = numbers((n_rows + 4) * stride);
                let block = BlockRef::new(&matrix, stride, (row, n_rows), (col, n_cols));
                let entry = |i: usize, j: usize| matrix[(row + i) * stride + col + j];
                let (left, wide) = (numbers(n * n_rows), numbers(n * n_cols));
                let (mut out, mut back) = (vec![9.0; n * n_cols], vec![9.0; n * n_rows]);
                block.times_rows(&left, &mut out);
                block.transposed_times_rows(&wide, &mut back);
                for m in 0..n {
                    for j in 0..n_cols {
                        let sum: f64 =
                            (0..n_rows).map(|i| left[m * n_rows + i] * entry(i, j)).sum();
                        assert!((out[m * n_cols + j] - sum).abs() < 1e-12);
                    }
                    for i in 0..n_rows {
                        let sum: f64 =
                            (0..n_cols).map(|j| wide[m * n_cols + j] * entry(i, j)).sum();
                        assert!((back[m * n_rows + i] - sum).abs() < 1e-12);
                    }
                }
            }
        }
    }
}
