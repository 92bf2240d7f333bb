//! Rows of matrices as slices, and parallel loops over chunks of rows.

use faer::{MatMut, MatRef, Par};
use std::ops::Range;

/// Approximate number of values per chunk: enough to outweigh the cost of a task, few enough to stay in the cache.
const CHUNK: usize = 1 << 14;

/// Borrows row `row_idx` of a row-major matrix.
///
/// # Panics
/// If the matrix is not row-major, or has no such row.
#[inline(always)]
pub fn row<T>(matrix: MatRef<'_, T>, row_idx: usize) -> &[T] {
    let matrix = matrix.try_as_row_major().expect("the matrix must be row-major");
    matrix.row(row_idx).as_slice()
}

/// Mutably borrows row `row_idx` of a row-major matrix.
///
/// # Panics
/// If the matrix is not row-major, or has no such row.
#[inline(always)]
pub fn row_mut<'a, T>(matrix: &'a mut MatMut<'_, T>, row_idx: usize) -> &'a mut [T] {
    let matrix = matrix.as_mut().try_as_row_major_mut();
    matrix.expect("the matrix must be row-major").row_mut(row_idx).as_slice_mut()
}

/// Something with rows that can be split between two of them.
pub trait Rows: Send + Sized {
    /// Number of rows.
    fn n_rows(&self) -> usize;

    /// Splits into the rows before `at` and the others.
    fn cut(self, at: usize) -> (Self, Self);
}

impl<T: Sync> Rows for MatRef<'_, T> {
    fn n_rows(&self) -> usize {
        self.nrows()
    }

    fn cut(self, at: usize) -> (Self, Self) {
        self.split_at_row(at)
    }
}

impl<T: Send> Rows for MatMut<'_, T> {
    fn n_rows(&self) -> usize {
        self.nrows()
    }

    fn cut(self, at: usize) -> (Self, Self) {
        self.split_at_row_mut(at)
    }
}

impl<T: Sync> Rows for &[T] {
    fn n_rows(&self) -> usize {
        self.len()
    }

    fn cut(self, at: usize) -> (Self, Self) {
        self.split_at(at)
    }
}

impl<T: Send> Rows for &mut [T] {
    fn n_rows(&self) -> usize {
        self.len()
    }

    fn cut(self, at: usize) -> (Self, Self) {
        self.split_at_mut(at)
    }
}

/// Row indices.
impl Rows for Range<usize> {
    fn n_rows(&self) -> usize {
        self.len()
    }

    fn cut(self, at: usize) -> (Self, Self) {
        let middle = self.start + at;
        (self.start..middle, middle..self.end)
    }
}

/// Tuples of equally many rows are split together.
macro_rules! rows_of_tuples {
    ($($first:ident $($other:ident)*;)*) => {$(
        impl<$first: Rows, $($other: Rows),*> Rows for ($first, $($other),*) {
            fn n_rows(&self) -> usize {
                self.0.n_rows()
            }

            #[allow(non_snake_case)]
            fn cut(self, at: usize) -> (Self, Self) {
                let ($first, $($other),*) = self;
                let ($first, $($other),*) = ($first.cut(at), $($other.cut(at)),*);
                (($first.0, $($other.0),*), ($first.1, $($other.1),*))
            }
        }
    )*};
}

rows_of_tuples! {
    A B;
    A B C;
    A B C D;
    A B C D E;
}

/// Number of rows per chunk for rows of `n_columns` values.
pub fn rows_per_chunk(n_columns: usize) -> usize {
    CHUNK.div_ceil(n_columns.max(1))
}

/// Calls `f` with chunks of `size` rows (the last one may be smaller) on the threads of `par`.
///
/// The chunks do not depend on the number of threads. If `f` is inlined, it is compiled for the widest vectors of the
/// processor.
pub fn for_each_chunk<R: Rows>(rows: R, size: usize, par: Par, f: impl Fn(R) + Sync) {
    sum_chunks(
        rows,
        size,
        par,
        #[inline(always)]
        |rows| {
            f(rows);
            0.0
        },
    );
}

/// Returns the sum of `f` over chunks of `size` rows, called as by [`for_each_chunk`].
///
/// The order of the additions does not depend on the number of threads.
pub fn sum_chunks<R: Rows>(rows: R, size: usize, par: Par, f: impl Fn(R) -> f64 + Sync) -> f64 {
    sum_halves(rows, size, par, &f)
}

fn sum_halves<R: Rows>(rows: R, size: usize, par: Par, f: &(impl Fn(R) -> f64 + Sync)) -> f64 {
    let n_rows = rows.n_rows();
    if n_rows == 0 {
        return 0.0;
    }
    if n_rows <= size {
        return pulp::Arch::new().dispatch(
            #[inline(always)]
            || f(rows),
        );
    }
    let (left, right) = rows.cut(n_rows.div_ceil(size).div_ceil(2) * size);
    let left = || sum_halves(left, size, par, f);
    let right = || sum_halves(right, size, par, f);
    match par {
        Par::Seq => left() + right(),
        Par::Rayon(_) => {
            let (left, right) = rayon::join(left, right);
            left + right
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn chunks_are_the_same_for_any_number_of_threads() {
        for n in [0usize, 1, 9, 10, 11, 35] {
            let mut numbers: Vec<usize> = (0..n).collect();
            for par in [Par::Seq, Par::rayon(0)] {
                let starts = Mutex::new(vec![]);
                for_each_chunk(&mut numbers[..], 10, par, |chunk: &mut [usize]| {
                    assert!(chunk.windows(2).all(|pair| pair[0] + 1 == pair[1]));
                    starts.lock().unwrap().push((chunk[0], chunk.len()));
                });
                let mut starts = starts.into_inner().unwrap();
                starts.sort_unstable();
                let expected: Vec<_> =
                    (0..n).step_by(10).map(|start| (start, 10.min(n - start))).collect();
                assert_eq!(starts, expected);
            }
        }
    }
}
