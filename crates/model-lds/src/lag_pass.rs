//! One pass over all covariances for a step of EM.

use crate::covariances::{Pass, Side, Weights};
use crate::memory::em_strip;
use crate::moments::{Centre, Moments};
use crate::packing::Packing;
use crate::panel::{Factor, Panel, view, view_mut};
use crate::sums::{Sum, total};
use latens_math::linalg::{Accum, Mat, matmul};
use latens_math::{Csr, Real, Strip};
use rayon::prelude::*;
use std::ops::Range;

/// So many rows of all products with a strip are held at once: enough that the strip is worth fetching.
const BLOCK_ROWS: usize = 512;

/// [`Covariances::pass`] of a text: all products of a few rows with a strip of C are made at once and used where
/// they are, so that none is ever stored as a whole.
pub(crate) struct LagPass<'a, T> {
    moments: &'a Moments<T>,
    c: &'a Panel<T>,
    n_lags: usize,
    /// The products that a block has: later words first, lag after lag.
    products: Vec<Product<'a, T>>,
    weights: Option<&'a Weights>,
}

struct Product<'a, T> {
    counts: &'a Csr<T>,
    lag: usize,
    edges: &'a Panel<T>,
    centre: Centre<T>,
}

impl<'a, T: Packing> LagPass<'a, T> {
    pub(crate) fn new(
        moments: &'a Moments<T>,
        c: &'a Panel<T>,
        n_lags: usize,
        weights: Option<&'a Weights>,
    ) -> LagPass<'a, T> {
        let sides =
            if weights.is_some() { &[Side::Later, Side::Earlier][..] } else { &[Side::Later] };
        let mut products = Vec::new();
        for &side in sides {
            let centres = moments.centres(1..n_lags + 1, side, c);
            products.extend(centres.into_iter().zip(1..).map(|(centre, lag)| Product {
                counts: moments.counts(lag, side),
                lag,
                edges: moments.edges(side),
                centre,
            }));
        }
        LagPass { moments, c, n_lags, products, weights }
    }

    pub(crate) fn run(&self) -> Pass<T> {
        let n = self.c.n_cols();
        let mut r = vec![Mat::zeros(n, n); self.n_lags];
        let mut sum = Panel::zeros(self.c.n_rows(), if self.weights.is_some() { n } else { 0 });
        let strips = Strip::<T>::ranges(self.c.stride(), em_strip(n));
        let widest = strips.iter().map(|strip| strip.len()).max().unwrap_or(0);
        let mut strip = Strip::zeros(self.c.n_rows(), widest);
        let parts = self.moments.parts();
        let mut sums: Vec<Sum<T>> =
            parts.iter().map(|_| Sum::new(n, self.n_lags * widest)).collect();
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
        Pass { r, sum }
    }
}

/// All weights for a strip, one under the other, as the products lie side by side.
fn stacked<T: Real>(weights: &Weights, columns: Range<usize>) -> Factor<T> {
    let Weights { right, left } = weights;
    let n = right[0].ncols();
    let mut stacked = Mat::zeros((right.len() + left.len()) * columns.len(), n);
    for (i, weights) in right.iter().chain(left).enumerate() {
        let rows = weights.subrows(columns.start, columns.end.min(n) - columns.start);
        stacked.subrows_mut(i * columns.len(), rows.nrows()).copy_from(rows);
    }
    Factor::new(stacked.as_ref())
}

/// The part of a pass that one strip of C has.
struct StripPass<'a, T> {
    all: &'a LagPass<'a, T>,
    strip: &'a Strip<T>,
    columns: Range<usize>,
    weights: Option<Factor<T>>,
}

impl<T: Packing> StripPass<'_, T> {
    /// How many numbers a row of all products has.
    fn width(&self) -> usize {
        self.all.products.len() * self.columns.len()
    }

    /// Room for a block of all products.
    fn scratch(&self) -> Vec<T> {
        vec![T::zero(); BLOCK_ROWS.min(self.all.c.n_rows()) * self.width()]
    }

    /// Adds the weighted products of some rows to `out`; `sum` becomes Σ Cᵀ Ψ_k C over them, the lags side by side.
    fn part(&self, rows: Range<usize>, out: &mut [T], sum: &mut Sum<T>, block: &mut [T]) {
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

    /// Some rows of all products with the strip.
    fn products(&self, rows: Range<usize>, block: &mut [T]) {
        let products = &self.all.products;
        let (width, n) = (self.width(), self.columns.len());
        for (row, block) in rows.clone().zip(block.chunks_exact_mut(width)) {
            for (product, out) in products.iter().zip(block.chunks_exact_mut(n)) {
                let edges = product.edges.row(row);
                product.centre.start(self.columns.clone(), [edges[0], edges[product.lag]], out);
            }
        }
        for (i, product) in products.iter().enumerate() {
            let counts = (product.counts, rows.clone());
            self.strip.add_product(counts, &mut block[i * n..], width);
        }
    }
}
