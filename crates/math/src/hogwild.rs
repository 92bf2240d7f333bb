//! Rows that many threads read and change at once without waiting for each other (Hogwild, Recht et al. 2011).
//!
//! A change that another thread makes between a read and a write is lost. That is rare where each step
//! touches few of many rows, and stochastic gradient descent bears it. One thread alone loses nothing, and
//! always gives the same result.
//!
//! Every access is a relaxed atomic one of 64 bits, that is, two numbers at a time: no data race, no unsafe
//! code, and on today's machines the same instruction as a plain access. What atomics cost is that compilers
//! do not make vector instructions of them. So a row is read once into memory of the thread's own
//! ([`SharedRows::dot`]), where all arithmetic is done in vectors, and written once ([`SharedRows::step`]).

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

impl Line {
    #[inline(always)]
    fn load(&self) -> Lanes {
        let pairs: [u64; LANES / 2] = std::array::from_fn(|i| self.0[i].load(Relaxed));
        Lanes(bytemuck::cast(pairs))
    }

    #[inline(always)]
    fn store(&self, lanes: Lanes) {
        let pairs: [u64; LANES / 2] = bytemuck::cast(lanes.0);
        self.0.iter().zip(pairs).for_each(|(pair, value)| pair.store(value, Relaxed));
    }
}

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
                let mut lanes = ZERO;
                lanes.0[..part.len()].copy_from_slice(part);
                let line = Line(Default::default());
                line.store(lanes);
                lines.push(line);
            }
        }
        SharedRows { n_columns, n_lines, lines }
    }

    /// A copy of all values, row after row. It is of one moment only if nobody else is writing.
    pub fn to_vec(&self) -> Vec<f32> {
        let mut values = Vec::with_capacity(self.lines.len() / self.n_lines * self.n_columns);
        for row in self.lines.chunks_exact(self.n_lines) {
            let end = values.len() + self.n_columns;
            row.iter().for_each(|line| values.extend_from_slice(&line.load().0));
            values.truncate(end);
        }
        values
    }

    /// A row of zeros of the same width.
    pub fn zeros(&self) -> Row {
        Row(vec![ZERO; self.n_lines])
    }

    /// x += u for the row u at `row_idx`.
    ///
    /// # Panics
    /// Here and below: if there is no such row, or another one is not as wide.
    #[inline(always)]
    pub fn add_to(&self, row_idx: usize, x: &mut Row) {
        for (line, x) in self.row(row_idx, x).iter().zip(&mut x.0) {
            let lanes = line.load();
            for (x, u) in x.0.iter_mut().zip(lanes.0) {
                *x += u;
            }
        }
    }

    /// u += x for the row u at `row_idx`.
    #[inline(always)]
    pub fn add(&self, row_idx: usize, x: &Row) {
        for (line, x) in self.row(row_idx, x).iter().zip(&x.0) {
            let mut lanes = line.load();
            for (u, x) in lanes.0.iter_mut().zip(x.0) {
                *u += x;
            }
            line.store(lanes);
        }
    }

    /// u · x for the row u at `row_idx`, which is copied to `copy`.
    #[inline(always)]
    pub fn dot(&self, row_idx: usize, x: &Row, copy: &mut Row) -> f32 {
        let row = self.row(row_idx, x);
        assert_eq!(row.len(), copy.0.len(), "rows of one width");
        let mut sums = [0.0; LANES];
        for ((line, x), copy) in row.iter().zip(&x.0).zip(&mut copy.0) {
            *copy = line.load();
            for ((sum, u), x) in sums.iter_mut().zip(copy.0).zip(x.0) {
                *sum += u * x;
            }
        }
        sum(sums)
    }

    /// e += g c and u = c + g x, for the row u at `row_idx` and the copy c that [`SharedRows::dot`] made of it.
    #[inline(always)]
    pub fn step(&self, row_idx: usize, copy: &Row, g: f32, x: &Row, e: &mut Row) {
        let row = self.row(row_idx, x);
        assert!(row.len() == copy.0.len() && row.len() == e.0.len(), "rows of one width");
        for (((line, copy), x), e) in row.iter().zip(&copy.0).zip(&x.0).zip(&mut e.0) {
            let mut lanes = *copy;
            for (((u, x), e), copy) in lanes.0.iter_mut().zip(x.0).zip(&mut e.0).zip(copy.0) {
                *e += g * copy;
                *u += g * x;
            }
            line.store(lanes);
        }
    }

    #[inline(always)]
    fn row(&self, row_idx: usize, other: &Row) -> &[Line] {
        assert_eq!(self.n_lines, other.0.len(), "rows of one width");
        &self.lines[row_idx * self.n_lines..][..self.n_lines]
    }
}

/// The sum of the lanes, halves to halves: the order that vectors are added up in.
#[inline(always)]
fn sum(mut lanes: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] += lanes[i + half];
        }
        half /= 2;
    }
    lanes[0]
}

impl Row {
    /// Makes all numbers zero.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.0.fill(ZERO);
    }

    /// Multiplies all numbers.
    #[inline(always)]
    pub fn scale(&mut self, factor: f32) {
        self.0.iter_mut().flat_map(|lanes| &mut lanes.0).for_each(|x| *x *= factor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    const N_COLUMNS: usize = 37;

    fn random(n: usize, rng: &mut Rng) -> Vec<f32> {
        (0..n).map(|_| rng.normal() as f32).collect()
    }

    /// A row of its own that has these values.
    fn own(rows: &SharedRows, values: &[f32]) -> Row {
        let mut row = rows.zeros();
        SharedRows::new(values, values.len()).add_to(0, &mut row);
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

    #[test]
    fn every_operation_agrees_with_its_formula() {
        let mut rng = Rng::new(2);
        let all = random(3 * N_COLUMNS, &mut rng);
        let (x, e, g) = (random(N_COLUMNS, &mut rng), random(N_COLUMNS, &mut rng), 0.3);
        let u = &all[N_COLUMNS..2 * N_COLUMNS];
        let rows = SharedRows::new(&all, N_COLUMNS);
        let (own_x, mut own_e, mut copy) = (own(&rows, &x), own(&rows, &e), rows.zeros());

        let dot: f64 = u.iter().zip(&x).map(|(u, x)| f64::from(*u) * f64::from(*x)).sum();
        assert!((f64::from(rows.dot(1, &own_x, &mut copy)) - dot).abs() < 1e-5);
        assert_eq!(values(&copy), u);

        rows.step(1, &copy, g, &own_x, &mut own_e);
        let add = |a: &[f32], g: f32, b: &[f32]| -> Vec<f32> {
            a.iter().zip(b).map(|(a, b)| a + g * b).collect()
        };
        let stepped = add(u, g, &x);
        assert_eq!(values(&own_e), add(&e, g, u));
        assert_eq!(rows.to_vec()[N_COLUMNS..2 * N_COLUMNS], stepped);

        rows.add(1, &own_x);
        let added = add(&stepped, 1.0, &x);
        let mut expected = all.clone();
        expected[N_COLUMNS..2 * N_COLUMNS].copy_from_slice(&added);
        assert_eq!(rows.to_vec(), expected, "other rows stay as they are");

        let mut sum = own_x.clone();
        rows.add_to(1, &mut sum);
        sum.scale(0.5);
        let half: Vec<f32> = add(&x, 1.0, &added).iter().map(|x| x * 0.5).collect();
        assert_eq!(values(&sum), half);
        sum.clear();
        assert_eq!(sum, rows.zeros());
    }

    #[test]
    fn threads_on_rows_of_their_own_lose_nothing() {
        let rows = SharedRows::new(&[0.0; 4 * N_COLUMNS], N_COLUMNS);
        let one = own(&rows, &[1.0; N_COLUMNS]);
        std::thread::scope(|scope| {
            for row_idx in 0..4 {
                let (rows, one) = (&rows, &one);
                scope.spawn(move || (0..10_000).for_each(|_| rows.add(row_idx, one)));
            }
        });
        assert_eq!(rows.to_vec(), [10_000.0; 4 * N_COLUMNS]);
    }

    #[test]
    #[should_panic(expected = "rows of one width")]
    fn rows_of_other_widths_are_a_bug() {
        let rows = SharedRows::new(&[0.0; 20], 20);
        rows.add(0, &SharedRows::new(&[0.0; 40], 40).zeros());
    }
}
