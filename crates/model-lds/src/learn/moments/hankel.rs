//! Products with the block Hankel matrix of covariances, whose block (i, j) is Ψ_{n+i−j}.
//!
//! They are computed strip by strip of columns, so that a product can overwrite its factor, and memory holds little
//! more than the factor.

use crate::learn::moments::covariances::Side;
use crate::learn::moments::text_moments::Moments;
use crate::linalg::compact_panel::CompactPanel;
use crate::linalg::panel::{RightFactor, par_parts, view, view_mut};
use crate::linalg::quantization::Quantize;
use crate::linalg::sums::cross;
use latens_math::Strip;
use latens_math::linalg::{Accum, Mat, matmul};
use rayon::prelude::*;
use std::ops::Range;

/// Overwrites X by H X, or by Hᵀ X for [`Side::Earlier`].
pub(crate) fn hankel_product<T: Quantize>(
    moments: &Moments<T>,
    side: Side,
    x: &mut [CompactPanel<T>],
) {
    let mut product = Product::new(moments, side, 0..x.len(), x);
    for strip in 0..x[0].strips().len() {
        product.compute(strip, x);
        for (to, x) in x.iter_mut().enumerate() {
            product.write(strip, to, x);
        }
    }
}

/// Block `to` of the same product as [`hankel_product`].
pub(crate) fn hankel_block<T: Quantize>(
    moments: &Moments<T>,
    side: Side,
    x: &[CompactPanel<T>],
    to: usize,
) -> CompactPanel<T> {
    let mut product = Product::new(moments, side, to..to + 1, x);
    let mut out = x[0].zeros_like();
    for strip in 0..x[0].strips().len() {
        product.compute(strip, x);
        product.write(strip, to, &mut out);
    }
    out
}

/// Some blocks of a product, one strip at a time.
struct Product<'a, T> {
    moments: &'a Moments<T>,
    side: Side,
    n_blocks: usize,
    to: Range<usize>,
    /// The strip of one block of the factor.
    input: Strip<T>,
    /// The strip of the product; a row holds the blocks side by side.
    out: Vec<T>,
}

impl<'a, T: Quantize> Product<'a, T> {
    fn new(moments: &'a Moments<T>, side: Side, to: Range<usize>, x: &[CompactPanel<T>]) -> Self {
        let (n_rows, max_strip) = (x[0].n_rows(), x[0].max_strip());
        let out = vec![T::zero(); n_rows * max_strip * to.len()];
        let input = Strip::zeros(n_rows, max_strip);
        Product { moments, side, n_blocks: x.len(), to, input, out }
    }

    fn compute(&mut self, strip: usize, x: &[CompactPanel<T>]) {
        let Product { moments, side, n_blocks, ref to, .. } = *self;
        let (n_rows, width) = (x[0].n_rows(), x[0].strips()[strip].len());
        let stride = width * to.len();
        let (input, out) = (&mut self.input, &mut self.out[..n_rows * stride]);
        let mut centering = Centering::new(moments, side, to.clone(), width);
        for (from, x) in x.iter().enumerate() {
            x.read_strip(strip, input);
            centering.add(input, |to| lag_between(n_blocks, side, from, to));
            // All threads work on the same strip, so that it stays in their caches.
            par_parts(out, stride, moments.parts()).for_each(|(rows, out)| {
                if from == 0 {
                    out.fill(T::zero());
                }
                for (i, to) in to.clone().enumerate() {
                    let counts = moments.counts(lag_between(n_blocks, side, from, to), side);
                    input.add_product((counts, rows.clone()), &mut out[i * width..], stride);
                }
            });
        }
        let margins = moments.margins(side);
        let centering = RightFactor::<T>::new(centering.factors.as_ref());
        par_parts(out, stride, moments.parts()).for_each(|(rows, out)| {
            let own = margins.view().subrows(rows.start, rows.len());
            let out = view_mut(out, rows.len(), stride, stride);
            matmul(out, Accum::Add, own, centering.view());
        });
    }

    /// Writes block `to` of the computed strip to a matrix.
    fn write(&self, strip: usize, to: usize, into: &mut CompactPanel<T>) {
        let width = into.strips()[strip].len();
        into.write_strip(strip, &self.out[(to - self.to.start) * width..], width * self.to.len());
    }
}

/// The lag of the block that maps block `from` of X to block `to` of the product.
fn lag_between(n_blocks: usize, side: Side, from: usize, to: usize) -> usize {
    match side {
        Side::Later => n_blocks + to - from,
        Side::Earlier => n_blocks + from - to,
    }
}

/// The centering of a strip of the product: each row's own margins (v and the sums of each lag), times `factors`, are
/// added to the row.
struct Centering<'a, T> {
    moments: &'a Moments<T>,
    side: Side,
    to: Range<usize>,
    width: usize,
    factors: Mat<f64>,
}

impl<'a, T: Quantize> Centering<'a, T> {
    fn new(moments: &'a Moments<T>, side: Side, to: Range<usize>, width: usize) -> Self {
        let factors = Mat::zeros(moments.margins(side).n_cols(), width * to.len());
        Centering { moments, side, to, width, factors }
    }

    /// Adds the terms of a strip of one block of the factor.
    fn add(&mut self, strip: &Strip<T>, lag_to: impl Fn(usize) -> usize) {
        let width = self.width;
        let values = view(strip.values(), strip.values().len() / width, width, width);
        let centers = cross(self.moments.margins(self.side.other()).view(), values);
        for (i, to) in self.to.clone().enumerate() {
            let lag = lag_to(to);
            for j in 0..width {
                let (null, center) = (centers[(0, j)], centers[(lag, j)]);
                self.factors[(0, i * width + j)] -= center - self.moments.n(lag) * null;
                self.factors[(lag, i * width + j)] -= null;
            }
        }
    }
}
