//! Rows that many threads read and change at once without waiting for each other (Hogwild, Recht et al. 2011).
//!
//! A change that another thread makes between a read and a write is lost. That is rare where each step
//! touches few of many rows, and stochastic gradient descent bears it. One thread alone loses nothing, and
//! always gives the same result.
//!
//! Shared rows can be read and written, and nothing else ([`SharedRows::load`], [`SharedRows::store`]): all arithmetic is
//! done on rows of the thread's own, in vectors. Reading and writing is by relaxed atomic accesses of 64 bits, that is, two
//! numbers at a time: no data race, and on today's machines the same instruction as a plain access. Only the compiler
//! makes no vector instructions of them.

use pulp::Simd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How many numbers are handled at once: a line of the cache.
const LANES: usize = 16;

/// A line of the cache, shared.
#[repr(align(64))]
struct Line([AtomicU64; LANES / 2]);

/// A line of the cache of the thread's own.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(align(64))]
struct Lanes([f32; LANES]);

const ZERO: Lanes = Lanes([0.0; LANES]);

/// A matrix of numbers that threads share.
pub struct SharedRows {
    n_columns: usize,
    /// How many lines a row takes; the rest of the last one is zero.
    n_lines: usize,
    lines: Vec<Line>,
}

/// A row of the thread's own, as wide as those of the [`SharedRows`] that made it.
#[derive(Clone, Debug, PartialEq)]
pub struct Row(Vec<Lanes>);

impl SharedRows {
    /// A matrix of these values, row after row.
    ///
    /// # Panics
    /// If there is no column, or no whole number of rows.
    pub fn new(values: &[f32], n_columns: usize) -> SharedRows {
        assert!(n_columns > 0 && values.len().is_multiple_of(n_columns), "whole rows");
        let n_lines = n_columns.div_ceil(LANES);
        let mut lines = Vec::with_capacity(values.len() / n_columns * n_lines);
        for row in values.chunks_exact(n_columns) {
            for part in row.chunks(LANES) {
                let mut lanes = ZERO.0;
                lanes[..part.len()].copy_from_slice(part);
                let pairs: [u64; LANES / 2] = bytemuck::cast(lanes);
                lines.push(Line(pairs.map(AtomicU64::new)));
            }
        }
        SharedRows { n_columns, n_lines, lines }
    }

    /// A copy of all values, row after row. It is of one moment only if nobody else is writing.
    pub fn to_vec(&self) -> Vec<f32> {
        let n_rows = self.lines.len() / self.n_lines;
        let (mut values, mut row) = (Vec::with_capacity(n_rows * self.n_columns), self.zeros());
        for row_idx in 0..n_rows {
            self.load(row_idx, &mut row);
            values.extend(row.0.iter().flat_map(|lanes| lanes.0).take(self.n_columns));
        }
        values
    }

    /// A row of zeros of the same width.
    pub fn zeros(&self) -> Row {
        Row(vec![ZERO; self.n_lines])
    }

    /// Copies the row at `row_idx` to `row`.
    ///
    /// # Panics
    /// Here and below: if there is no such row, or another one is not as wide.
    #[inline(always)]
    pub fn load(&self, row_idx: usize, row: &mut Row) {
        assert_eq!(self.n_lines, row.0.len(), "rows of one width");
        for (line, lanes) in self.row(row_idx).iter().zip(&mut row.0) {
            for (pair, place) in line.0.iter().zip(lanes.0.as_chunks_mut::<2>().0) {
                *place = bytemuck::cast(pair.load(Relaxed));
            }
        }
    }

    /// Copies `row` to the row at `row_idx`.
    #[inline(always)]
    pub fn store(&self, row_idx: usize, row: &Row) {
        assert_eq!(self.n_lines, row.0.len(), "rows of one width");
        for (line, lanes) in self.row(row_idx).iter().zip(&row.0) {
            for (pair, &values) in line.0.iter().zip(lanes.0.as_chunks::<2>().0) {
                pair.store(bytemuck::cast(values), Relaxed);
            }
        }
    }

    /// Asks for a row that will be needed soon, so that it need not be waited for then.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub fn prefetch(&self, row_idx: usize) {
        #[cfg(target_arch = "x86_64")]
        for line in self.row(row_idx) {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: a prefetch reads nothing and cannot fault, and every x86-64 has the instruction.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(line).cast()) }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = row_idx;
    }

    #[inline(always)]
    fn row(&self, row_idx: usize) -> &[Line] {
        &self.lines[row_idx * self.n_lines..][..self.n_lines]
    }
}

#[inline(always)]
fn vectors<S: Simd>(lanes: &Lanes) -> &[S::f32s] {
    S::as_simd_f32s(&lanes.0).0
}

#[inline(always)]
fn vectors_mut<S: Simd>(lanes: &mut Lanes) -> &mut [S::f32s] {
    S::as_mut_simd_f32s(&mut lanes.0).0
}

/// Arithmetic in the vectors of `simd`.
impl Row {
    /// Makes all numbers zero.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.0.fill(ZERO);
    }

    /// x · y for this row x.
    #[inline(always)]
    pub fn dot<S: Simd>(&self, simd: S, y: &Row) -> f32 {
        // Two sums side by side, so that one addition need not wait for the other.
        let mut sums = [simd.splat_f32s(0.0); 2];
        for (x, y) in self.0.iter().zip(&y.0) {
            for (i, (&x, &y)) in vectors::<S>(x).iter().zip(vectors::<S>(y)).enumerate() {
                sums[i % 2] = simd.mul_add_e_f32s(x, y, sums[i % 2]);
            }
        }
        simd.reduce_sum_f32s(simd.add_f32s(sums[0], sums[1]))
    }

    /// x += g y for this row x.
    #[inline(always)]
    pub fn add_scaled<S: Simd>(&mut self, simd: S, g: f32, y: &Row) {
        let g = simd.splat_f32s(g);
        for (x, y) in self.0.iter_mut().zip(&y.0) {
            for (x, &y) in vectors_mut::<S>(x).iter_mut().zip(vectors::<S>(y)) {
                *x = simd.mul_add_e_f32s(g, y, *x);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use pulp::{Arch, Scalar, WithSimd};

    const N_COLUMNS: usize = 37;

    fn random(n: usize, rng: &mut Rng) -> Vec<f32> {
        (0..n).map(|_| rng.normal() as f32).collect()
    }

    /// A row of its own that has these values.
    fn own(values: &[f32]) -> Row {
        let rows = SharedRows::new(values, values.len());
        let mut row = rows.zeros();
        rows.load(0, &mut row);
        row
    }

    fn values(row: &Row) -> Vec<f32> {
        row.0.iter().flat_map(|lanes| lanes.0).take(N_COLUMNS).collect()
    }

    #[test]
    fn values_come_back_as_they_were() {
        let mut rng = Rng::new(1);
        for n_columns in [1, 15, 16, 17, 100] {
            let values = random(5 * n_columns, &mut rng);
            assert_eq!(SharedRows::new(&values, n_columns).to_vec(), values);
        }
    }

    /// Runs the test on whatever vectors this machine has, and without any.
    struct Arithmetic;

    impl WithSimd for Arithmetic {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let mut rng = Rng::new(2);
            let (x, y, g) = (random(N_COLUMNS, &mut rng), random(N_COLUMNS, &mut rng), 0.3);
            let (mut own_x, own_y) = (own(&x), own(&y));
            let dot: f64 = x.iter().zip(&y).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum();
            assert!((f64::from(own_x.dot(simd, &own_y)) - dot).abs() < 1e-5);
            own_x.add_scaled(simd, g, &own_y);
            let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| x + g * y).collect();
            assert_close(&values(&own_x), &expected);
            own_x.clear();
            assert_eq!(values(&own_x), [0.0; N_COLUMNS]);
        }
    }

    fn assert_close(a: &[f32], b: &[f32]) {
        assert_eq!(a.len(), b.len());
        let far = a.iter().zip(b).find(|(a, b)| (*a - *b).abs() > 1e-6);
        assert!(far.is_none(), "{far:?}");
    }

    #[test]
    fn arithmetic_agrees_with_its_formulas() {
        Scalar.vectorize(Arithmetic);
        Arch::new().dispatch(Arithmetic);
    }

    #[test]
    fn a_stored_row_is_there_for_others_and_changes_no_other() {
        let mut rng = Rng::new(3);
        let (mut all, row) = (random(3 * N_COLUMNS, &mut rng), random(N_COLUMNS, &mut rng));
        let rows = SharedRows::new(&all, N_COLUMNS);
        rows.prefetch(1);
        rows.store(1, &own(&row));
        all[N_COLUMNS..2 * N_COLUMNS].copy_from_slice(&row);
        assert_eq!(rows.to_vec(), all);
    }

    #[test]
    fn threads_on_rows_of_their_own_lose_nothing() {
        let rows = SharedRows::new(&[0.0; 4 * N_COLUMNS], N_COLUMNS);
        let one = own(&[1.0; N_COLUMNS]);
        std::thread::scope(|scope| {
            for row_idx in 0..4 {
                let (rows, one, mut row) = (&rows, &one, rows.zeros());
                scope.spawn(move || {
                    for _ in 0..10_000 {
                        rows.load(row_idx, &mut row);
                        row.add_scaled(Scalar, 1.0, one);
                        rows.store(row_idx, &row);
                    }
                });
            }
        });
        assert_eq!(rows.to_vec(), [10_000.0; 4 * N_COLUMNS]);
    }

    #[test]
    #[should_panic(expected = "rows of one width")]
    fn rows_of_other_widths_are_a_bug() {
        let rows = SharedRows::new(&[0.0; 20], 20);
        rows.store(0, &own(&[0.0; 40]));
    }
}
