//! Tall matrices in half the memory, for the block Hankel matrix: each number as one of 16 bits, with a factor
//! for every row of a strip.
//!
//! A row is then known to 2⁻¹⁶ of its largest number, which is nothing beside what the random start of the
//! decomposition leaves open. Double precision, with which tests compare, stays as it is.

use crate::panel::{Factor, Panel, view, view_mut};
use crate::sums::{N_PARTS, Sum, total};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};
use latens_math::{Real, Strip};
use rayon::prelude::*;
use std::ops::Range;

/// Numbers that can be packed.
pub(crate) trait Packing: Real {
    /// What a number becomes.
    type Packed: Copy + Default + Send + Sync;

    /// How far a number may be from what it was, as a share of the largest one of its row.
    const ROUNDING: f64;

    /// Packs a row; the factor that it must be multiplied with again comes back.
    fn pack(row: &[Self], out: &mut [Self::Packed]) -> Self;

    fn unpack(row: &[Self::Packed], factor: Self, out: &mut [Self]);
}

impl Packing for f32 {
    type Packed = i16;

    const ROUNDING: f64 = 0.5 / 32_767.0;

    #[inline(always)]
    fn pack(row: &[f32], out: &mut [i16]) -> f32 {
        // As whole numbers they have the same order, and what is no number is the largest of all, so that it is not
        // lost.
        let bits = row.iter().map(|value| (value.to_bits() & 0x7fff_ffff) as i32);
        let largest = f32::from_bits(bits.fold(0, i32::max) as u32);
        if largest < 1e-30 {
            out.fill(0);
            return 0.0;
        }
        /// Adding it leaves the nearest whole number in the last bits.
        const ROUND: f32 = 12_582_912.0;
        let factor = 32_767.0 / largest;
        for (out, value) in out.iter_mut().zip(row) {
            *out = (value * factor + ROUND).to_bits() as i16;
        }
        largest / 32_767.0
    }

    #[inline(always)]
    fn unpack(row: &[i16], factor: f32, out: &mut [f32]) {
        out.iter_mut().zip(row).for_each(|(out, &value)| *out = f32::from(value) * factor);
    }
}

impl Packing for f64 {
    type Packed = f64;

    const ROUNDING: f64 = 0.0;

    fn pack(row: &[f64], out: &mut [f64]) -> f64 {
        out.copy_from_slice(row);
        1.0
    }

    fn unpack(row: &[f64], _factor: f64, out: &mut [f64]) {
        out.copy_from_slice(row);
    }
}

/// So many rows lie together, and are worked on at once.
const ROWS: usize = 512;

/// A matrix of many rows: [`ROWS`] rows after [`ROWS`] rows, each of these strip after strip.
#[derive(Clone, Debug)]
pub(crate) struct Packed<T: Packing> {
    n_rows: usize,
    n_cols: usize,
    strips: Vec<Range<usize>>,
    values: Vec<T::Packed>,
    /// One for each row of a strip, in the same order.
    factors: Vec<T>,
}

impl<T: Packing> Packed<T> {
    pub(crate) fn zeros(n_rows: usize, n_cols: usize) -> Packed<T> {
        let strips = Strip::<T>::ranges(n_cols);
        let values = vec![T::Packed::default(); n_rows * n_cols];
        let factors = vec![T::zero(); n_rows * strips.len()];
        Packed { n_rows, n_cols, strips, values, factors }
    }

    /// Several matrices that lie side by side, from their rows.
    pub(crate) fn side_by_side(
        n: usize,
        n_rows: usize,
        n_cols: usize,
        row: impl Fn(usize, &mut [T]) + Sync,
    ) -> Vec<Packed<T>> {
        let mut all = vec![Packed::zeros(n_rows, n_cols); n];
        let mut blocks: Vec<_> = all.iter_mut().map(|one| one.blocks_mut().into_iter()).collect();
        let beside = |_| blocks.iter_mut().flat_map(|blocks| blocks.next()).collect();
        let blocks: Vec<Vec<BlockMut<'_, T>>> = (0..n_rows.div_ceil(ROWS)).map(beside).collect();
        let scratch = || vec![T::zero(); ROWS * n * n_cols];
        blocks.into_par_iter().for_each_init(scratch, |scratch, mut blocks| {
            let rows = scratch.chunks_exact_mut(n * n_cols).take(blocks[0].n_rows);
            rows.enumerate().for_each(|(i, out)| row(blocks[0].first + i, out));
            for (i, block) in blocks.iter_mut().enumerate() {
                block.pack(&scratch[i * n_cols..], n * n_cols);
            }
        });
        all
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.n_rows
    }

    pub(crate) fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// The columns of each strip.
    pub(crate) fn strips(&self) -> &[Range<usize>] {
        &self.strips
    }

    /// How many columns the widest strip has.
    pub(crate) fn widest(&self) -> usize {
        self.strips.iter().map(|strip| strip.len()).max().unwrap_or(0)
    }

    /// The numbers of a strip, in place of what `out` has.
    pub(crate) fn unpack_strip(&self, strip: usize, out: &mut Strip<T>) {
        let width = self.strips[strip].len();
        out.set_width(width);
        let outs = out.values_mut().par_chunks_mut(ROWS * width);
        outs.enumerate().for_each(|(i, out)| self.block(i).unpack_strip(strip, out, width));
    }

    /// Puts other numbers in place of a strip; their rows begin at multiples of `stride`.
    pub(crate) fn pack_strip(&mut self, strip: usize, values: &[T], stride: usize) {
        self.blocks_mut().into_par_iter().for_each(|mut block| {
            block.pack_strip(strip, &values[block.first * stride..], stride);
        });
    }

    /// The product with a small square matrix on the right, in place of it.
    pub(crate) fn times_in_place(&mut self, right: &Mat<f64>) {
        let (n, right) = (self.n_cols, Factor::<T>::new(right.as_ref()));
        let scratch = || [vec![T::zero(); ROWS * n], vec![T::zero(); ROWS * n]];
        self.blocks_mut().into_par_iter().for_each_init(scratch, |[from, to], mut block| {
            block.as_ref().unpack(from);
            let from = view(from, block.n_rows, n, n);
            let out = view_mut(to, block.n_rows, n, n);
            matmul(out, Accum::Replace, from, right.view(), T::one(), Par::Seq);
            block.pack(to, n);
        });
    }

    fn n_blocks(&self) -> usize {
        self.n_rows.div_ceil(ROWS)
    }

    fn block(&self, i: usize) -> Block<'_, T> {
        let first = i * ROWS;
        let rows = first..(first + ROWS).min(self.n_rows);
        let n_strips = self.strips.len();
        Block {
            n_rows: rows.len(),
            strips: &self.strips,
            values: &self.values[rows.start * self.n_cols..rows.end * self.n_cols],
            factors: &self.factors[rows.start * n_strips..rows.end * n_strips],
        }
    }

    fn blocks_mut(&mut self) -> Vec<BlockMut<'_, T>> {
        let (n_cols, strips) = (self.n_cols, &self.strips);
        let values = self.values.chunks_mut(ROWS * n_cols);
        let factors = self.factors.chunks_mut(ROWS * strips.len());
        let blocks = values.zip(factors).enumerate().map(|(i, (values, factors))| {
            let n_rows = values.len() / n_cols;
            BlockMut { first: i * ROWS, n_rows, strips, values, factors }
        });
        blocks.collect()
    }
}

/// Some rows of a matrix.
struct Block<'a, T: Packing> {
    n_rows: usize,
    strips: &'a [Range<usize>],
    values: &'a [T::Packed],
    factors: &'a [T],
}

struct BlockMut<'a, T: Packing> {
    first: usize,
    n_rows: usize,
    strips: &'a [Range<usize>],
    values: &'a mut [T::Packed],
    factors: &'a mut [T],
}

impl<T: Packing> Block<'_, T> {
    /// All numbers, row after row.
    fn unpack(&self, out: &mut [T]) {
        let n_cols = self.strips.last().map_or(0, |last| last.end);
        for (strip, columns) in self.strips.iter().enumerate() {
            self.unpack_strip(strip, &mut out[columns.start..], n_cols);
        }
    }

    /// Those of a strip; rows begin at multiples of `stride`.
    fn unpack_strip(&self, strip: usize, out: &mut [T], stride: usize) {
        let columns = &self.strips[strip];
        let width = columns.len();
        let values = self.values[columns.start * self.n_rows..].chunks_exact(width);
        let factors = &self.factors[strip * self.n_rows..][..self.n_rows];
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                for ((values, &factor), out) in values.zip(factors).zip(out.chunks_mut(stride)) {
                    T::unpack(values, factor, &mut out[..width]);
                }
            },
        );
    }
}

impl<T: Packing> BlockMut<'_, T> {
    fn as_ref(&self) -> Block<'_, T> {
        let BlockMut { n_rows, strips, values, factors, .. } = self;
        Block { n_rows: *n_rows, strips, values, factors }
    }

    /// Puts rows that begin at multiples of `stride` in place of these.
    fn pack(&mut self, values: &[T], stride: usize) {
        for (strip, columns) in self.strips.iter().enumerate() {
            self.pack_strip(strip, &values[columns.start..], stride);
        }
    }

    fn pack_strip(&mut self, strip: usize, values: &[T], stride: usize) {
        let columns = &self.strips[strip];
        let width = columns.len();
        let out = self.values[columns.start * self.n_rows..].chunks_exact_mut(width);
        let factors = &mut self.factors[strip * self.n_rows..][..self.n_rows];
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                for ((out, factor), row) in out.zip(factors).zip(values.chunks(stride)) {
                    *factor = T::pack(&row[..width], out);
                }
            },
        );
    }
}

/// Σ Xᵀ X over matrices with the same columns.
pub(crate) fn gram<T: Packing>(parts: &[Packed<T>]) -> Mat<f64> {
    let n = parts[0].n_cols;
    let blocks: Vec<Block<'_, T>> =
        parts.iter().flat_map(|part| (0..part.n_blocks()).map(|i| part.block(i))).collect();
    let sums: Vec<Sum<T>> = blocks
        .par_chunks(blocks.len().div_ceil(N_PARTS))
        .map(|blocks| {
            let (mut sum, mut scratch) = (Sum::new(n, n), vec![T::zero(); ROWS * n]);
            for block in blocks {
                block.unpack(&mut scratch);
                sum.add_square(view(&scratch, block.n_rows, n, n));
            }
            sum
        })
        .collect();
    let half = total(&sums, 0..n);
    Mat::from_fn(n, n, |i, j| if i >= j { half[(i, j)] } else { half[(j, i)] })
}

/// leftᵀ · right.
pub(crate) fn cross<T: Packing>(left: &Packed<T>, right: &Packed<T>) -> Mat<f64> {
    let n = right.n_cols;
    let scratch = || vec![T::zero(); ROWS * n];
    sum_blocks(left, n, scratch, |i, scratch, left, sum| {
        right.block(i).unpack(scratch);
        sum.add(left, view(scratch, left.nrows(), n, n));
    })
}

/// The same for a matrix on the right that is not packed.
pub(crate) fn cross_with_panel<T: Packing>(left: &Packed<T>, right: &Panel<T>) -> Mat<f64> {
    sum_blocks(
        left,
        right.n_cols(),
        || (),
        |i, (), left, sum| sum.add(left, right.view().subrows(i * ROWS, left.nrows())),
    )
}

/// Sums up what is added for each block of a matrix.
fn sum_blocks<T: Packing, S>(
    left: &Packed<T>,
    n_cols: usize,
    scratch: impl Fn() -> S + Sync,
    add: impl Fn(usize, &mut S, MatRef<'_, T>, &mut Sum<T>) + Sync,
) -> Mat<f64> {
    let (n, n_blocks) = (left.n_cols, left.n_blocks());
    let length = n_blocks.div_ceil(N_PARTS);
    let parts: Vec<usize> = (0..n_blocks).step_by(length).collect();
    let sums: Vec<Sum<T>> = parts
        .into_par_iter()
        .map(|first| {
            let (mut sum, mut unpacked) = (Sum::new(n, n_cols), vec![T::zero(); ROWS * n]);
            let mut scratch = scratch();
            for i in first..(first + length).min(n_blocks) {
                let block = left.block(i);
                block.unpack(&mut unpacked);
                add(i, &mut scratch, view(&unpacked, block.n_rows, n, n), &mut sum);
            }
            sum
        })
        .collect();
    total(&sums, 0..n_cols)
}

/// Σ X_i R_i of tall matrices and small ones.
pub(crate) fn times<T: Packing>(left: &[Packed<T>], right: &[Mat<f64>]) -> Panel<T> {
    let right: Vec<Factor<T>> = right.iter().map(|right| Factor::new(right.as_ref())).collect();
    let (n, n_cols) = (left[0].n_cols, right[0].view().ncols());
    let mut out = Panel::zeros(left[0].n_rows, n_cols);
    let stride = out.stride();
    out.par_blocks(ROWS).for_each(|(first, block)| {
        let (n_rows, mut scratch) = (block.len() / stride, vec![T::zero(); ROWS * n]);
        let mut out = view_mut(block, n_rows, n_cols, stride);
        for (i, (left, right)) in left.iter().zip(&right).enumerate() {
            left.block(first / ROWS).unpack(&mut scratch);
            let accum = if i == 0 { Accum::Replace } else { Accum::Add };
            let left = view(&scratch, n_rows, n, n);
            matmul(out.as_mut(), accum, left, right.view(), T::one(), Par::Seq);
        }
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_math::Rng;

    fn random<T: Packing>(n_rows: usize, n_cols: usize, seed: u64) -> Packed<T> {
        let rows = |row: usize, out: &mut [T]| {
            let mut rng = Rng::stream(seed, row as u64);
            out.iter_mut().for_each(|out| *out = T::of(rng.normal()));
        };
        Packed::side_by_side(1, n_rows, n_cols, rows).remove(0)
    }

    fn dense<T: Packing>(packed: &Packed<T>) -> Mat<f64> {
        let mut out = Mat::zeros(packed.n_rows, packed.n_cols);
        for (strip, columns) in packed.strips().iter().enumerate() {
            let mut unpacked = Strip::zeros(packed.n_rows, packed.widest());
            packed.unpack_strip(strip, &mut unpacked);
            for (i, row) in unpacked.values().chunks_exact(columns.len()).enumerate() {
                row.iter().zip(columns.clone()).for_each(|(x, j)| out[(i, j)] = x.wide());
            }
        }
        out
    }

    fn assert_near(found: &Mat<f64>, expected: &Mat<f64>, tolerance: f64) {
        let error = crate::dense::frobenius(&(found - expected));
        let size = crate::dense::frobenius(expected);
        assert!(error <= tolerance * size, "{error:e} of {size:e}");
    }

    #[test]
    fn rows_are_known_to_a_small_part_of_their_largest_number() {
        let mut rng = Rng::new(1);
        for scale in [1e-20, 1e-3, 1.0, 1e20] {
            let row: Vec<f32> = (0..50).map(|_| (scale * rng.normal()) as f32).collect();
            let (mut packed, mut out) = ([0; 50], [0.0; 50]);
            let factor = f32::pack(&row, &mut packed);
            f32::unpack(&packed, factor, &mut out);
            let largest = row.iter().fold(0.0f32, |most, x| most.max(x.abs()));
            assert!(row.iter().zip(out).all(|(x, y)| (x - y).abs() <= 1.6e-5 * largest));
        }
    }

    #[test]
    fn what_is_no_number_is_not_lost() {
        for strange in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let (mut packed, mut out) = ([0; 3], [0.0; 3]);
            let factor = f32::pack(&[1.0, strange, 2.0], &mut packed);
            f32::unpack(&packed, factor, &mut out);
            assert!(out.iter().all(|x| x.is_nan()), "{out:?}");
        }
        assert_eq!(f32::pack(&[0.0, 0.0], &mut [7, 7]), 0.0);
    }

    #[test]
    fn rows_come_back_from_where_they_were_put() {
        let n_cols = 70;
        let number = |row: usize, j: usize| (1000 * row + j) as f64;
        let parts = Packed::<f64>::side_by_side(3, 600, n_cols, |row, out| {
            out.iter_mut().enumerate().for_each(|(j, out)| *out = number(row, j));
        });
        for (i, part) in parts.iter().enumerate() {
            let expected = Mat::from_fn(600, n_cols, |row, j| number(row, i * n_cols + j));
            assert_eq!(dense(part), expected);
        }
    }

    #[test]
    fn products_are_those_of_the_numbers() {
        fn check<T: Packing>(n_rows: usize, n: usize, tolerance: f64) {
            let (x, y) = (random::<T>(n_rows, n, 1), random::<T>(n_rows, n, 2));
            let (dense_x, dense_y) = (dense(&x), dense(&y));
            let expected = dense_x.transpose() * &dense_y;
            assert_near(&cross(&x, &y), &expected, tolerance);
            let squares = dense_x.transpose() * &dense_x + dense_y.transpose() * &dense_y;
            assert_near(&gram(&[x.clone(), y.clone()]), &squares, tolerance);
            let mut rng = Rng::new(3);
            let right = [0, 1].map(|_| Mat::from_fn(n, n, |_, _| rng.normal()));
            let expected = &dense_x * &right[0] + &dense_y * &right[1];
            let product = times(&[x.clone(), y.clone()], &right);
            let found = Mat::from_fn(n_rows, n, |i, j| product.row(i)[j].wide());
            assert_near(&found, &expected, tolerance);
            assert_near(
                &cross_with_panel(&y, &product),
                &(dense_y.transpose() * &found),
                tolerance,
            );
            let mut turned = x.clone();
            turned.times_in_place(&right[0]);
            assert_near(&dense(&turned), &(&dense_x * &right[0]), tolerance);
        }
        for (n_rows, n) in [(3, 2), (700, 16), (1500, 70)] {
            check::<f64>(n_rows, n, 1e-13);
            check::<f32>(n_rows, n, 3e-5);
        }
    }
}
