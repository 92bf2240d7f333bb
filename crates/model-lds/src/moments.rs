//! Covariances of the words of a text, from counts.
//!
//! Centring is of rank two, and exact whatever the edges and pseudo-counts: with d = 1/√μ and v = √μ,
//!
//! Ψ_k X = (d·(N_k (d·X)) − v ((d·l_k)ᵀ X) − (d·r_k)(vᵀ X) + n_k v (vᵀ X)) / T'
//!
//! for counts N_k with the row sums r_k, the column sums l_k and the sum n_k; T' = T + κV, and
//! μ_i = (n_i + κ)/T'. So v is an exact null vector.

use crate::covariances::{Covariances, Pass, Side, Weights};
use crate::panel::{Panel, Sum, cross, narrow, total, view, view_mut};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, Par};
use latens_math::{Csr, Real, WeightedRows};
use rayon::prelude::*;
use std::ops::Range;

/// So many rows of all products are held at once, in the nearest cache.
const BLOCK_ROWS: usize = 96;

/// Into so many parts of about equal work a pass is shared out; fixed, so that sums are the same for any
/// number of threads.
const N_PARTS: usize = 16;

/// The covariances of a text, implicit in its counts.
#[derive(Clone, Debug)]
pub(crate) struct Moments<T> {
    /// T' = T + κV.
    n_tokens: f64,
    mu: Vec<f64>,
    v: Vec<T>,
    d: Vec<T>,
    lags: Vec<Lag<T>>,
    parts: Vec<Range<usize>>,
}

#[derive(Clone, Debug)]
struct Lag<T> {
    /// N_k: rows are later words.
    later: Csr<T>,
    /// N_kᵀ.
    earlier: Csr<T>,
    row_sums: Vec<f64>,
    column_sums: Vec<f64>,
    n: f64,
}

impl<T: Real> Lag<T> {
    fn new(later: Csr<T>) -> Lag<T> {
        let n_types = later.n_rows();
        let (mut row_sums, mut column_sums) = (vec![0.0; n_types], vec![0.0; n_types]);
        for (row, row_sum) in row_sums.iter_mut().enumerate() {
            let (columns, counts) = later.row(row);
            for (&column, count) in columns.iter().zip(counts) {
                *row_sum += count.wide();
                column_sums[column as usize] += count.wide();
            }
        }
        let n = row_sums.iter().sum();
        let earlier = later.transpose();
        Lag { later, earlier, row_sums, column_sums, n }
    }

    fn counts(&self, side: Side) -> &Csr<T> {
        match side {
            Side::Later => &self.later,
            Side::Earlier => &self.earlier,
        }
    }

    /// The sums over the rows of a side's counts.
    fn sums(&self, side: Side) -> &[f64] {
        match side {
            Side::Later => &self.row_sums,
            Side::Earlier => &self.column_sums,
        }
    }
}

impl Side {
    fn other(self) -> Side {
        match self {
            Side::Later => Side::Earlier,
            Side::Earlier => Side::Later,
        }
    }
}

impl<T: Real> Moments<T> {
    /// The covariances of types with these counts, of which `pseudo_counts` more were seen alone.
    ///
    /// # Panics
    /// If a type has no probability at all, or the counts have other sizes.
    pub(crate) fn new(
        unigrams: &[u64],
        lags: impl IntoIterator<Item = Csr<T>>,
        pseudo_counts: f64,
    ) -> Moments<T> {
        let seen: f64 = unigrams.iter().map(|&count| count as f64).sum();
        let n_tokens = seen + pseudo_counts * unigrams.len() as f64;
        let mu: Vec<f64> =
            unigrams.iter().map(|&count| (count as f64 + pseudo_counts) / n_tokens).collect();
        assert!(mu.iter().all(|&mu| mu > 0.0), "every type has a probability");
        let lags: Vec<Csr<T>> = lags.into_iter().collect();
        let lags: Vec<Lag<T>> = lags.into_par_iter().map(Lag::new).collect();
        assert!(lags.iter().all(|lag| lag.later.n_rows() == mu.len()), "counts of these types");
        let parts = parts(mu.len(), |row| {
            let n_pairs = |csr: &Csr<T>| csr.offsets()[row + 1] - csr.offsets()[row];
            let pairs = lags.iter().map(|lag| n_pairs(&lag.later) + n_pairs(&lag.earlier));
            // Besides its pairs a row costs products with small matrices.
            pairs.sum::<u64>() + 40 * lags.len() as u64
        });
        Moments {
            n_tokens,
            v: mu.iter().map(|mu| T::of(mu.sqrt())).collect(),
            d: mu.iter().map(|mu| T::of(1.0 / mu.sqrt())).collect(),
            mu,
            lags,
            parts,
        }
    }

    /// The probability of each type, pseudo-counts included.
    pub(crate) fn mu(&self) -> &[f64] {
        &self.mu
    }

    fn lag(&self, lag: usize) -> &Lag<T> {
        &self.lags[lag - 1]
    }

    /// vᵀ X, and (d · sums of a lag)ᵀ X for each of the given lags: what centring needs.
    fn centres(&self, lags: Range<usize>, side: Side, x: &Panel<T>) -> Mat<f64> {
        let mut columns = Panel::zeros(self.n_types(), 1 + lags.len());
        for row in 0..self.n_types() {
            let (v, d) = (self.mu[row].sqrt(), 1.0 / self.mu[row].sqrt());
            let out = columns.row_mut(row);
            out[0] = T::of(v);
            for (out, lag) in out[1..].iter_mut().zip(lags.clone()) {
                *out = T::of(d * self.lag(lag).sums(side.other())[row]);
            }
        }
        cross(columns.view(), x.view())
    }

    /// X with its rows multiplied by d, so that a row of a product is a plain sum of rows.
    fn whitened(&self, x: &Panel<T>) -> Panel<T> {
        let mut x = x.clone();
        x.scale_rows(&self.d);
        x
    }

    /// What is subtracted from a row of Ψ_k X: v times the first row, and d · r_k times the second.
    fn corrections(&self, lag: usize, centre: &[f64], null: &[f64]) -> [Vec<T>; 2] {
        let n = self.lag(lag).n;
        let both = centre.iter().zip(null).map(|(&centre, &null)| centre - n * null);
        [both.map(T::of).collect(), null.iter().copied().map(T::of).collect()]
    }

    /// A row of Ψ_k X or its transpose, with what lies between rows, which stays zero; `x` is whitened.
    fn row_of_product(
        &self,
        (lag, side): (usize, Side),
        row: usize,
        x: &Panel<T>,
        [by_v, by_d]: &[Vec<T>; 2],
        out: &mut [T],
    ) {
        let lag = self.lag(lag);
        let (rows, weights) = lag.counts(side).row(row);
        out.fill(T::zero());
        WeightedRows { rows, weights, matrix: x.values(), stride: x.stride(), column: 0 }
            .add_to(out);
        let scale = T::of(1.0 / self.n_tokens);
        let (d, v) = (self.d[row] * scale, self.v[row] * scale);
        let edge = T::of(lag.sums(side)[row]) * d;
        for ((out, &by_v), &by_d) in out.iter_mut().zip(by_v).zip(by_d) {
            *out = *out * d - v * by_v - edge * by_d;
        }
    }

    /// The product with the block Hankel matrix or its transpose. The blocks of X are in its columns, so
    /// a pair of words that counts for several blocks is one sum over neighbouring columns.
    fn hankel_product(&self, n_blocks: usize, side: Side, mut x: Panel<T>) -> Panel<T> {
        let width = x.n_cols() / n_blocks;
        let lags = 1..2 * n_blocks;
        let centres = self.centres(lags.clone(), side, &x);
        x.scale_rows(&self.d);
        let corrections = self.hankel_corrections(n_blocks, side, width, &centres);
        let null: Vec<T> = (0..x.n_cols()).map(|j| T::of(centres[(0, j)])).collect();
        let mut out = Panel::compact(x.n_rows(), x.n_cols());
        let stride = out.stride();
        let scale = T::of(1.0 / self.n_tokens);
        out.par_blocks(8).for_each(|(first, block)| {
            for (row, out) in block.chunks_exact_mut(stride).enumerate() {
                let row = first + row;
                for lag in lags.clone() {
                    let (from, to, n) = hankel_blocks(n_blocks, side, lag);
                    let (rows, weights) = self.lag(lag).counts(side).row(row);
                    let column = from * width;
                    let sum = WeightedRows {
                        rows,
                        weights,
                        matrix: x.values(),
                        stride: x.stride(),
                        column,
                    };
                    let out = &mut out[to * width..(to + n) * width];
                    sum.add_to(out);
                    let edge = T::of(self.lag(lag).sums(side)[row]);
                    let null = &null[column..column + n * width];
                    out.iter_mut().zip(null).for_each(|(out, &null)| *out -= edge * null);
                }
                let (d, v) = (self.d[row] * scale, self.v[row] * scale);
                for (out, &by_v) in out.iter_mut().zip(&corrections) {
                    *out = *out * d - v * by_v;
                }
            }
        });
        out
    }

    /// What is subtracted, times v, from each row of a product with the Hankel matrix.
    fn hankel_corrections(
        &self,
        n_blocks: usize,
        side: Side,
        width: usize,
        centres: &Mat<f64>,
    ) -> Vec<T> {
        let mut sums = vec![0.0; n_blocks * width];
        for lag in 1..2 * n_blocks {
            let (from, to, n) = hankel_blocks(n_blocks, side, lag);
            for j in 0..n * width {
                let (centre, null) =
                    (centres[(lag, from * width + j)], centres[(0, from * width + j)]);
                sums[to * width + j] += centre - self.lag(lag).n * null;
            }
        }
        sums.into_iter().map(T::of).collect()
    }
}

/// Which neighbouring blocks of X go to which blocks of Y with Ψ_lag: the first of each, and their number.
fn hankel_blocks(n_blocks: usize, side: Side, lag: usize) -> (usize, usize, usize) {
    // Block (i, j) is Ψ_{n+i−j}: lags above n lie below the diagonal.
    let below = lag.saturating_sub(n_blocks);
    let above = n_blocks.saturating_sub(lag);
    let n = n_blocks - below - above;
    match side {
        Side::Later => (above, below, n),
        Side::Earlier => (below, above, n),
    }
}

/// Ranges of rows of about equal cost.
fn parts(n_rows: usize, cost: impl Fn(usize) -> u64) -> Vec<Range<usize>> {
    let total: u64 = (0..n_rows).map(&cost).sum();
    let target = total.div_ceil(N_PARTS as u64).max(1);
    let (mut parts, mut first, mut sum) = (Vec::new(), 0, 0);
    for row in 0..n_rows {
        sum += cost(row);
        if sum >= target {
            parts.push(first..row + 1);
            (first, sum) = (row + 1, 0);
        }
    }
    if first < n_rows {
        parts.push(first..n_rows);
    }
    parts
}

impl<T: Real> Covariances<T> for Moments<T> {
    fn n_types(&self) -> usize {
        self.mu.len()
    }

    fn null_vector(&self) -> &[T] {
        &self.v
    }

    fn hankel(&self, n_blocks: usize, x: Panel<T>) -> Panel<T> {
        self.hankel_product(n_blocks, Side::Later, x)
    }

    fn transposed_hankel(&self, n_blocks: usize, x: Panel<T>) -> Panel<T> {
        self.hankel_product(n_blocks, Side::Earlier, x)
    }

    fn product(&self, lag: usize, side: Side, x: &Panel<T>) -> Panel<T> {
        let centres = self.centres(lag..lag + 1, side, x);
        let row = |i: usize| (0..x.n_cols()).map(|j| centres[(i, j)]).collect::<Vec<_>>();
        let corrections = self.corrections(lag, &row(1), &row(0));
        let x = self.whitened(x);
        let mut out = Panel::zeros(x.n_rows(), x.n_cols());
        let stride = out.stride();
        out.par_blocks(8).for_each(|(first, block)| {
            for (row, out) in block.chunks_exact_mut(stride).enumerate() {
                self.row_of_product((lag, side), first + row, &x, &corrections, out);
            }
        });
        out
    }

    /// All products of a few rows are made at once and used where they are, so that none is ever stored.
    fn pass(&self, c: &Panel<T>, n_lags: usize, weights: Option<&Weights>) -> Pass<T> {
        let pass = BlockPass::new(self, c, n_lags, weights);
        let mut sum = Panel::zeros(if weights.is_some() { c.n_rows() } else { 0 }, c.n_cols());
        let mut rest = sum.values_mut();
        let mut parts = Vec::new();
        for rows in &self.parts {
            let length = if weights.is_some() { rows.len() * c.stride() } else { 0 };
            let (part, others) = rest.split_at_mut(length);
            parts.push((rows.clone(), part));
            rest = others;
        }
        let sums = parts
            .into_par_iter()
            .map_init(|| pass.scratch(), |block, (rows, out)| pass.part(rows, out, block))
            .collect();
        let sums = total(sums).expect("there are words");
        let (n, stride) = (c.n_cols(), c.stride());
        let r = (0..n_lags).map(|lag| sums.as_ref().subcols(lag * stride, n).to_owned()).collect();
        Pass { r, sum }
    }
}

/// A lag and a side, with what centring subtracts.
type Product<T> = ((usize, Side), [Vec<T>; 2]);

/// [`Covariances::pass`] of a text.
struct BlockPass<'a, T> {
    moments: &'a Moments<T>,
    c: &'a Panel<T>,
    whitened: Panel<T>,
    n_lags: usize,
    /// The products that a block has, with what centring subtracts from each.
    products: Vec<Product<T>>,
    /// All weights, one under the other, as the products lie side by side.
    weights: Option<Mat<T>>,
}

impl<'a, T: Real> BlockPass<'a, T> {
    fn new(
        moments: &'a Moments<T>,
        c: &'a Panel<T>,
        n_lags: usize,
        weights: Option<&Weights>,
    ) -> BlockPass<'a, T> {
        let sides =
            if weights.is_some() { &[Side::Later, Side::Earlier][..] } else { &[Side::Later] };
        let mut products = Vec::new();
        for &side in sides {
            let centres = moments.centres(1..n_lags + 1, side, c);
            let row = |i: usize| (0..c.n_cols()).map(|j| centres[(i, j)]).collect::<Vec<_>>();
            for lag in 1..=n_lags {
                let corrections = moments.corrections(lag, &row(lag), &row(0));
                products.push(((lag, side), corrections));
            }
        }
        let weights = weights.map(|Weights { right, left }| {
            let (n, stride) = (c.n_cols(), c.stride());
            let mut stacked = Mat::zeros(products.len() * stride, n);
            for (i, weights) in right.iter().chain(left).enumerate() {
                let narrowed = narrow::<T>(weights.as_ref());
                stacked.as_mut().subrows_mut(i * stride, n).copy_from(narrowed);
            }
            stacked
        });
        BlockPass { moments, c, whitened: moments.whitened(c), n_lags, products, weights }
    }

    /// Room for a block of all products.
    fn scratch(&self) -> Vec<T> {
        vec![T::zero(); BLOCK_ROWS * self.products.len() * self.c.stride()]
    }

    /// Adds the weighted products of some rows to `out`; Σ Cᵀ Ψ_k C over them comes back, the lags side by
    /// side.
    fn part(&self, rows: Range<usize>, out: &mut [T], block: &mut [T]) -> Mat<f64> {
        let (n, stride) = (self.c.n_cols(), self.c.stride());
        let width = self.products.len() * stride;
        let mut sum = Sum::new(n, self.n_lags * stride);
        for first in rows.clone().step_by(BLOCK_ROWS) {
            let n_rows = BLOCK_ROWS.min(rows.end - first);
            for (i, row) in block.chunks_exact_mut(width).take(n_rows).enumerate() {
                for ((product, corrections), row) in
                    self.products.iter().zip(row.chunks_exact_mut(stride))
                {
                    self.moments.row_of_product(
                        *product,
                        first + i,
                        &self.whitened,
                        corrections,
                        row,
                    );
                }
            }
            let block = view(block, n_rows, width, width);
            sum.add(self.c.view().subrows(first, n_rows), block.subcols(0, self.n_lags * stride));
            if let Some(weights) = &self.weights {
                let out = &mut out[(first - rows.start) * stride..][..n_rows * stride];
                let out = view_mut(out, n_rows, n, stride);
                matmul(out, Accum::Replace, block, weights.as_ref(), T::one(), Par::Seq);
            }
        }
        sum.finish()
    }
}
