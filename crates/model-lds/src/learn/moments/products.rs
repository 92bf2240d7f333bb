//! Products with the covariances of a text.

use crate::learn::moments::covariances::{Covariances, LagSums, LagWeights, Side};
use crate::learn::moments::hankel::{hankel_block, hankel_product};
use crate::learn::moments::lag_pass::LagPass;
use crate::learn::moments::text_moments::Moments;
use crate::linalg::compact_panel::CompactPanel;
use crate::linalg::panel::Panel;
use crate::linalg::quantization::Quantize;
use latens_math::Strip;
use rayon::prelude::*;

impl<T: Quantize> Covariances<T> for Moments<T> {
    fn n_types(&self) -> usize {
        self.mu().len()
    }

    fn null_vector(&self) -> &[T] {
        self.v()
    }

    fn hankel_product(&self, side: Side, x: &mut [CompactPanel<T>]) {
        hankel_product(self, side, x);
    }

    fn hankel_block(&self, side: Side, x: &[CompactPanel<T>], block: usize) -> CompactPanel<T> {
        hankel_block(self, side, x, block)
    }

    fn product(&self, lag: usize, side: Side, x: &Panel<T>) -> Panel<T> {
        let center = self.centers(lag..lag + 1, side, x).remove(0);
        let mut out = Panel::zeros(x.n_rows(), x.n_cols());
        let (n_cols, stride) = (out.n_cols(), out.stride());
        let mut strip = Strip::zeros(x.n_rows(), stride);
        strip.copy_columns(x.values(), stride, 0..stride);
        out.par_parts(self.parts()).for_each(|(rows, out)| {
            for (row, out) in rows.clone().zip(out.chunks_exact_mut(stride)) {
                let margins = self.margins(side).row(row);
                center.start(0..n_cols, [margins[0], margins[lag]], out);
            }
            strip.add_product((self.counts(lag, side), rows), out, stride);
        });
        out
    }

    fn pass(&self, c: &Panel<T>, n_lags: usize, weights: Option<&LagWeights>) -> LagSums<T> {
        LagPass::new(self, c, n_lags, weights).run()
    }
}
