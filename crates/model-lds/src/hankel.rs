//! Products with the block Hankel matrix of covariances, block (i, j) of which is Ψ_{n+i−j}.

use crate::covariances::Side;
use crate::moments::Moments;
use crate::panel::{Factor, Panel, view_mut};
use crate::sums::cross;
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, Par};
use latens_math::{Real, Strips};
use rayon::prelude::*;

/// H X, or Hᵀ X for [`Side::Earlier`]; the blocks of X and of the product lie side by side. X is used up, so that
/// no more than two matrices of this size are there at any time.
pub(crate) fn hankel_product<T: Real>(
    moments: &Moments<T>,
    n_blocks: usize,
    side: Side,
    x: Panel<T>,
) -> Panel<T> {
    let (n_rows, n_cols) = (x.n_rows(), x.n_cols());
    let width = n_cols / n_blocks;
    let starts = Factor::<T>::new(starts(moments, n_blocks, side, &x).as_ref());
    let strips = Strips::new(x.values(), n_cols, n_blocks);
    drop(x);
    let edges = moments.edges(1..2 * n_blocks, side);
    let mut out = Panel::compact(n_rows, n_cols);
    out.par_parts(moments.parts()).for_each(|(rows, out)| {
        let own = edges.view().subrows(rows.start, rows.len());
        let out = view_mut(out, rows.len(), n_cols, n_cols);
        matmul(out, Accum::Replace, own, starts.view(), T::one(), Par::Seq);
    });
    // All threads work on the same strip, which stays in the cache of each.
    for (strip, columns) in strips.ranges().iter().enumerate() {
        let (from, offset) = (columns.start / width, columns.start % width);
        out.par_parts(moments.parts()).for_each(|(rows, out)| {
            for to in 0..n_blocks {
                let counts = moments.counts(lag_between(n_blocks, side, from, to), side);
                let out = &mut out[to * width + offset..];
                strips.add_product(strip, (counts, rows.clone()), out, n_cols);
            }
        });
    }
    out
}

/// The lag of the block that takes block `from` of X to block `to` of the product.
fn lag_between(n_blocks: usize, side: Side, from: usize, to: usize) -> usize {
    match side {
        Side::Later => n_blocks + to - from,
        Side::Earlier => n_blocks + from - to,
    }
}

/// What centring comes to: a row of the product begins with its own numbers, v and the sums of each lag, times
/// these rows.
fn starts<T: Real>(moments: &Moments<T>, n_blocks: usize, side: Side, x: &Panel<T>) -> Mat<f64> {
    let lags = 1..2 * n_blocks;
    let centres = cross(moments.edges(lags.clone(), side.other()).view(), x.view());
    let width = x.n_cols() / n_blocks;
    let mut starts = Mat::zeros(1 + lags.len(), x.n_cols());
    for (from, to) in (0..n_blocks).flat_map(|from| (0..n_blocks).map(move |to| (from, to))) {
        let lag = lag_between(n_blocks, side, from, to);
        for j in 0..width {
            let null = centres[(0, from * width + j)];
            let centre = centres[(lag, from * width + j)];
            starts[(0, to * width + j)] -= centre - moments.n(lag) * null;
            starts[(lag, to * width + j)] -= null;
        }
    }
    starts
}
