//! One pass over the covariances of all lags, for an iteration of EM.

use crate::learn::memory_budget::em_strip;
use crate::learn::moments::covariances::{LagSums, LagWeights, Side};
use crate::learn::moments::text_moments::{Center, Moments};
use crate::linalg::panel::{Panel, RightFactor, view, view_mut};
use crate::linalg::quantization::Quantize;
use crate::linalg::sums::{Accumulator, total};
use latens_math::linalg::{Accum, Mat, matmul};
use latens_math::{Csr, Real, Strip};
use rayon::prelude::*;
use std::ops::Range;

/// Number of rows of all products with a strip that are held at once: enough to amortize loading the strip.
const BLOCK_ROWS: usize = 512;

/// The implementation of `Covariances::pass` for a text.
///
/// All products of a few rows with a strip of C are computed and used at once, so that no product is ever stored as a
/// whole.
pub(crate) struct LagPass<'a, T> {
    moments: &'a Moments<T>,
    c: &'a Panel<T>,
    n_lags: usize,
    /// The products in a block: those for later words first, lag by lag.
    products: Vec<Product<'a, T>>,
    weights: Option<&'a LagWeights>,
}

struct Product<'a, T> {
    counts: &'a Csr<T>,
    lag: usize,
    margins: &'a Panel<T>,
    center: Center<T>,
}

impl<'a, T: Quantize> LagPass<'a, T> {
    pub(crate) fn new(
        moments: &'a Moments<T>,
        c: &'a Panel<T>,
        n_lags: usize,
        weights: Option<&'a LagWeights>,
    ) -> LagPass<'a, T> {
        let sides =
            if weights.is_some() { &[Side::Later, Side::Earlier][..] } else { &[Side::Later] };
        let mut products = Vec::new();
        for &side in sides {
            let centers = moments.centers(1..n_lags + 1, side, c);
            products.extend(centers.into_iter().zip(1..).map(|(center, lag)| Product {
                counts: moments.counts(lag, side),
                lag,
                margins: moments.margins(side),
                center,
            }));
        }
        LagPass { moments, c, n_lags, products, weights }
    }

    pub(crate) fn run(&self) -> LagSums<T> {
        let n = self.c.n_cols();
        let mut r = vec![Mat::zeros(n, n); self.n_lags];
        let mut sum = Panel::zeros(self.c.n_rows(), if self.weights.is_some() { n } else { 0 });
        let strips = Strip::<T>::ranges(self.c.stride(), em_strip(n));
        let max_strip = strips.iter().map(|strip| strip.len()).max().unwrap_or(0);
        let mut strip = Strip::zeros(self.c.n_rows(), max_strip);
        let parts = self.moments.parts();
        let mut sums: Vec<Accumulator<T>> =
            parts.iter().map(|_| Accumulator::new(n, self.n_lags * max_strip)).collect();
        for columns in &strips {
            strip.copy_columns(self.c.values(), self.c.stride(), columns.clone());
            let pass = StripPass {
                all: self,
                strip: &strip,
                columns: columns.clone(),
                weights: self.weights.map(|weights| stacked(weights, columns.clone())),
            };
            let shared_out = sum.par_parts(parts).zip(&mut sums);
            shared_out.for_each_init(
                || pass.scratch(),
                |block, ((rows, out), sum)| pass.part(rows, out, sum, block),
            );
            let width = columns.len();
            r.par_iter_mut().enumerate().for_each(|(lag, r)| {
                let real = columns.start..columns.end.min(n);
                let own = lag * width..lag * width + real.len();
                r.as_mut().subcols_mut(real.start, real.len()).copy_from(total(&sums, own));
            });
        }
        LagSums { r, sum }
    }
}

/// All weights for a strip, stacked vertically to match products that are side by side.
fn stacked<T: Real>(weights: &LagWeights, columns: Range<usize>) -> RightFactor<T> {
    let LagWeights { right, left } = weights;
    let n = right[0].ncols();
    let mut stacked = Mat::zeros((right.len() + left.len()) * columns.len(), n);
    for (i, weights) in right.iter().chain(left).enumerate() {
        let rows = weights.subrows(columns.start, columns.end.min(n) - columns.start);
        stacked.subrows_mut(i * columns.len(), rows.nrows()).copy_from(rows);
    }
    RightFactor::new(stacked.as_ref())
}

/// The part of a pass that belongs to one strip of C.
struct StripPass<'a, T> {
    all: &'a LagPass<'a, T>,
    strip: &'a Strip<T>,
    columns: Range<usize>,
    weights: Option<RightFactor<T>>,
}

impl<T: Quantize> StripPass<'_, T> {
    /// The number of columns of all products side by side.
    fn width(&self) -> usize {
        self.all.products.len() * self.columns.len()
    }

    /// Scratch space for a block of all products.
    fn scratch(&self) -> Vec<T> {
        vec![T::zero(); BLOCK_ROWS.min(self.all.c.n_rows()) * self.width()]
    }

    /// Adds the weighted products of some rows to `out`, and sets `sum` to Σ Cᵀ Ψ_k C over these rows, with the lags
    /// side by side.
    fn part(&self, rows: Range<usize>, out: &mut [T], sum: &mut Accumulator<T>, block: &mut [T]) {
        let LagPass { c, n_lags, .. } = *self.all;
        let (n, stride, width) = (c.n_cols(), c.stride(), self.width());
        let of_r = n_lags * self.columns.len();
        sum.restart();
        for first in rows.clone().step_by(BLOCK_ROWS) {
            let n_rows = BLOCK_ROWS.min(rows.end - first);
            self.products(first..first + n_rows, &mut block[..n_rows * width]);
            let block = view(block, n_rows, width, width);
            sum.add(c.view().subrows(first, n_rows), block.subcols(0, of_r));
            if let Some(weights) = &self.weights {
                let out = &mut out[(first - rows.start) * stride..][..n_rows * stride];
                let out = view_mut(out, n_rows, n, stride);
                matmul(out, Accum::Add, block, weights.view());
            }
        }
    }

    /// Computes some rows of all products with the strip.
    fn products(&self, rows: Range<usize>, block: &mut [T]) {
        let products = &self.all.products;
        let (width, n) = (self.width(), self.columns.len());
        for (row, block) in rows.clone().zip(block.chunks_exact_mut(width)) {
            for (product, out) in products.iter().zip(block.chunks_exact_mut(n)) {
                let margins = product.margins.row(row);
                product.center.start(self.columns.clone(), [margins[0], margins[product.lag]], out);
            }
        }
        for (i, product) in products.iter().enumerate() {
            let counts = (product.counts, rows.clone());
            self.strip.add_product(counts, &mut block[i * n..], width);
        }
    }
}
