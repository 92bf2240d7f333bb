//! Matrix rows that many threads update without locks (Hogwild, Recht et al. 2011).
//!
//! An update that another thread makes between a read and a write is overwritten. This is rare if each step touches a
//! few of many rows, and stochastic gradient descent tolerates it. A single thread loses nothing and is reproducible.
//!
//! Shared rows can only be loaded and stored ([`SharedRows::load`], [`SharedRows::store`]); all arithmetic runs in
//! vectors on rows that a thread owns. Loads and stores are relaxed atomic accesses of 64 bits, two numbers at a time.
//! There is no data race, and on current processors the instructions are those of a plain access, except that the
//! compiler does not vectorize them.

use crate::prefetch;
use pulp::Simd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Number of values per cache line.
const LANES: usize = 16;

/// A shared cache line.
#[repr(align(64))]
struct Line([AtomicU64; LANES / 2]);

/// A cache line that one thread owns.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(align(64))]
struct Lanes([f32; LANES]);

const ZERO: Lanes = Lanes([0.0; LANES]);

/// A matrix that threads share.
pub struct SharedRows {
    n_columns: usize,
    /// Number of cache lines per row; the padding of the last one is zero.
    n_lines: usize,
    lines: Vec<Line>,
}

/// A row that one thread owns, as wide as those of the [`SharedRows`] that created it.
#[derive(Clone, Debug, PartialEq)]
pub struct Row(Vec<Lanes>);

impl SharedRows {
    /// Creates a matrix from values in row-major order.
    ///
    /// # Panics
    /// If `n_columns` is 0, or does not divide the number of values.
    pub fn new(values: &[f32], n_columns: usize) -> SharedRows {
        assert!(
            n_columns > 0 && values.len().is_multiple_of(n_columns),
            "the values must form whole rows"
        );
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

    /// Copies all values in row-major order. The copy is consistent only if no other thread is writing.
    pub fn to_vec(&self) -> Vec<f32> {
        let n_rows = self.lines.len() / self.n_lines;
        let (mut values, mut row) = (Vec::with_capacity(n_rows * self.n_columns), self.zeros());
        for row_idx in 0..n_rows {
            self.load(row_idx, &mut row);
            values.extend(row.0.iter().flat_map(|lanes| lanes.0).take(self.n_columns));
        }
        values
    }

    /// Creates a row of zeros of the same width.
    pub fn zeros(&self) -> Row {
        Row(vec![ZERO; self.n_lines])
    }

    /// Copies the row at `row_idx` to `row`.
    ///
    /// # Panics
    /// If `row_idx` is out of range, or the widths differ.
    #[inline(always)]
    pub fn load(&self, row_idx: usize, row: &mut Row) {
        assert_eq!(self.n_lines, row.0.len(), "rows must have the same width");
        for (line, lanes) in self.row(row_idx).iter().zip(&mut row.0) {
            for (pair, place) in line.0.iter().zip(lanes.0.as_chunks_mut::<2>().0) {
                *place = bytemuck::cast(pair.load(Relaxed));
            }
        }
    }

    /// Copies `row` to the row at `row_idx`.
    ///
    /// # Panics
    /// If `row_idx` is out of range, or the widths differ.
    #[inline(always)]
    pub fn store(&self, row_idx: usize, row: &Row) {
        assert_eq!(self.n_lines, row.0.len(), "rows must have the same width");
        for (line, lanes) in self.row(row_idx).iter().zip(&row.0) {
            for (pair, &values) in line.0.iter().zip(lanes.0.as_chunks::<2>().0) {
                pair.store(bytemuck::cast(values), Relaxed);
            }
        }
    }

    /// Prefetches a row that will be needed soon.
    ///
    /// # Panics
    /// If `row_idx` is out of range.
    #[inline(always)]
    pub fn prefetch(&self, row_idx: usize) {
        prefetch(self.row(row_idx));
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
    /// Sets all values to zero.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.0.fill(ZERO);
    }

    /// Computes x · y for this row x.
    #[inline(always)]
    pub fn dot<S: Simd>(&self, simd: S, y: &Row) -> f32 {
        // Two independent sums, so that consecutive additions do not wait for each other.
        let mut sums = [simd.splat_f32s(0.0); 2];
        for (x, y) in self.0.iter().zip(&y.0) {
            for (i, (&x, &y)) in vectors::<S>(x).iter().zip(vectors::<S>(y)).enumerate() {
                sums[i % 2] = simd.mul_add_e_f32s(x, y, sums[i % 2]);
            }
        }
        simd.reduce_sum_f32s(simd.add_f32s(sums[0], sums[1]))
    }

    /// Computes x += g y for this row x.
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

    /// Returns an owned row with these values.
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
    fn values_round_trip() {
        let mut rng = Rng::new(1);
        for n_columns in [1, 15, 16, 17, 100] {
            let values = random(5 * n_columns, &mut rng);
            assert_eq!(SharedRows::new(&values, n_columns).to_vec(), values);
        }
    }

    /// Runs the test with the widest vectors of this processor and with scalars.
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
    fn arithmetic_agrees_with_the_formulas() {
        Scalar.vectorize(Arithmetic);
        Arch::new().dispatch(Arithmetic);
    }

    #[test]
    fn storing_a_row_changes_no_other_row() {
        let mut rng = Rng::new(3);
        let (mut all, row) = (random(3 * N_COLUMNS, &mut rng), random(N_COLUMNS, &mut rng));
        let rows = SharedRows::new(&all, N_COLUMNS);
        rows.prefetch(1);
        rows.store(1, &own(&row));
        all[N_COLUMNS..2 * N_COLUMNS].copy_from_slice(&row);
        assert_eq!(rows.to_vec(), all);
    }

    #[test]
    fn threads_on_different_rows_lose_no_update() {
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
    #[should_panic(expected = "rows must have the same width")]
    fn rows_of_different_widths_panic() {
        let rows = SharedRows::new(&[0.0; 20], 20);
        rows.store(0, &own(&[0.0; 40]));
    }
}
