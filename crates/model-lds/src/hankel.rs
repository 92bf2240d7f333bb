//! Products with the block Hankel matrix of covariances, block (i, j) of which is Ψ_{n+i−j}.
//!
//! They are made strip after strip of columns, so that a product can take the place of its factor, and little more
//! than the factor is ever in memory.

use crate::covariances::Side;
use crate::moments::Moments;
use crate::packed::Packed;
use crate::packing::Packing;
use crate::panel::{Factor, par_parts, view, view_mut};
use crate::sums::cross;
use latens_math::Strip;
use latens_math::linalg::{Accum, Mat, matmul};
use rayon::prelude::*;
use std::ops::Range;

/// H X, or Hᵀ X for [`Side::Earlier`], in place of X.
pub(crate) fn hankel_product<T: Packing>(moments: &Moments<T>, side: Side, x: &mut [Packed<T>]) {
    let mut product = Product::new(moments, side, 0..x.len(), x);
    for strip in 0..x[0].strips().len() {
        product.make(strip, x);
        for (to, x) in x.iter_mut().enumerate() {
            product.pack(strip, to, x);
        }
    }
}

/// Block `to` of the same product.
pub(crate) fn hankel_block<T: Packing>(
    moments: &Moments<T>,
    side: Side,
    x: &[Packed<T>],
    to: usize,
) -> Packed<T> {
    let mut product = Product::new(moments, side, to..to + 1, x);
    let mut out = x[0].zeros_like();
    for strip in 0..x[0].strips().len() {
        product.make(strip, x);
        product.pack(strip, to, &mut out);
    }
    out
}

/// Some blocks of a product, of one strip at a time.
struct Product<'a, T> {
    moments: &'a Moments<T>,
    side: Side,
    n_blocks: usize,
    to: Range<usize>,
    /// A strip of one block of the factor.
    input: Strip<T>,
    /// The strip of the product: a row has those of all blocks side by side.
    out: Vec<T>,
}

impl<'a, T: Packing> Product<'a, T> {
    fn new(moments: &'a Moments<T>, side: Side, to: Range<usize>, x: &[Packed<T>]) -> Self {
        let (n_rows, widest) = (x[0].n_rows(), x[0].widest());
        let out = vec![T::zero(); n_rows * widest * to.len()];
        let input = Strip::zeros(n_rows, widest);
        Product { moments, side, n_blocks: x.len(), to, input, out }
    }

    fn make(&mut self, strip: usize, x: &[Packed<T>]) {
        let Product { moments, side, n_blocks, ref to, .. } = *self;
        let (n_rows, width) = (x[0].n_rows(), x[0].strips()[strip].len());
        let stride = width * to.len();
        let (input, out) = (&mut self.input, &mut self.out[..n_rows * stride]);
        let mut centring = Centring::new(moments, side, to.clone(), width);
        for (from, x) in x.iter().enumerate() {
            x.unpack_strip(strip, input);
            centring.add(input, |to| lag_between(n_blocks, side, from, to));
            // All threads work on the same strip, which stays in the cache of each.
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
        let edges = moments.edges(side);
        let centring = Factor::<T>::new(centring.factors.as_ref());
        par_parts(out, stride, moments.parts()).for_each(|(rows, out)| {
            let own = edges.view().subrows(rows.start, rows.len());
            let out = view_mut(out, rows.len(), stride, stride);
            matmul(out, Accum::Add, own, centring.view());
        });
    }

    /// Puts block `to` of what was made into a matrix.
    fn pack(&self, strip: usize, to: usize, into: &mut Packed<T>) {
        let width = into.strips()[strip].len();
        into.pack_strip(strip, &self.out[(to - self.to.start) * width..], width * self.to.len());
    }
}

/// The lag of the block that takes block `from` of X to block `to` of the product.
fn lag_between(n_blocks: usize, side: Side, from: usize, to: usize) -> usize {
    match side {
        Side::Later => n_blocks + to - from,
        Side::Earlier => n_blocks + from - to,
    }
}

/// What centring comes to: to a row of the product its own numbers, v and the sums of each lag, are added times
/// these factors.
struct Centring<'a, T> {
    moments: &'a Moments<T>,
    side: Side,
    to: Range<usize>,
    width: usize,
    factors: Mat<f64>,
}

impl<'a, T: Packing> Centring<'a, T> {
    fn new(moments: &'a Moments<T>, side: Side, to: Range<usize>, width: usize) -> Self {
        let factors = Mat::zeros(moments.edges(side).n_cols(), width * to.len());
        Centring { moments, side, to, width, factors }
    }

    /// Adds what comes from a strip of one block of the factor.
    fn add(&mut self, strip: &Strip<T>, lag_to: impl Fn(usize) -> usize) {
        let width = self.width;
        let values = view(strip.values(), strip.values().len() / width, width, width);
        let centres = cross(self.moments.edges(self.side.other()).view(), values);
        for (i, to) in self.to.clone().enumerate() {
            let lag = lag_to(to);
            for j in 0..width {
                let (null, centre) = (centres[(0, j)], centres[(lag, j)]);
                self.factors[(0, i * width + j)] -= centre - self.moments.n(lag) * null;
                self.factors[(lag, i * width + j)] -= null;
            }
        }
    }
}
