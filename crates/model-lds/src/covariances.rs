//! The covariances Ψ_k of words k tokens apart, which are all that is learned from.

use crate::packed::Packed;
use crate::packing::Packing;
use crate::panel::{Panel, times};
use crate::sums::cross;
use latens_math::linalg::Mat;

/// Ψ_k = 1/T' Σ_t w_{t+k} w_tᵀ of whitened words, for k = 1, 2, …, as what they do to tall matrices.
/// Rows are later words, columns earlier ones; Ψ_0 = I − v vᵀ.
pub(crate) trait Covariances<T: Packing>: Sync {
    fn n_types(&self) -> usize;

    /// The unit vector that all words are orthogonal to.
    fn null_vector(&self) -> &[T];

    /// Y_i = Σ_j Ψ_{n+i−j} X_j for n blocks X_j, in place of them: the product with the block Hankel matrix. For
    /// [`Side::Earlier`] it is that with its transpose, Y_j = Σ_i Ψ_{n+i−j}ᵀ X_i.
    fn hankel(&self, side: Side, x: &mut [Packed<T>]);

    /// One block of the same product.
    fn hankel_block(&self, side: Side, x: &[Packed<T>], block: usize) -> Packed<T>;

    /// Ψ_k X, or Ψ_kᵀ X.
    fn product(&self, lag: usize, side: Side, x: &Panel<T>) -> Panel<T>;

    /// One pass over all covariances up to the lag of the weights: R_k = Cᵀ Ψ_k C for each lag, and
    /// Σ_k (Ψ_k C right_k + Ψ_kᵀ C left_k) unless there are no weights.
    fn pass(&self, c: &Panel<T>, n_lags: usize, weights: Option<&Weights>) -> Pass<T> {
        let mut sum = Panel::zeros(c.n_rows(), c.n_cols());
        let mut r = Vec::new();
        for lag in 1..=n_lags {
            let later = self.product(lag, Side::Later, c);
            r.push(cross(c.view(), later.view()));
            let Some(Weights { right, left }) = weights else { continue };
            let earlier = self.product(lag, Side::Earlier, c);
            let terms =
                [times(later.view(), &right[lag - 1]), times(earlier.view(), &left[lag - 1])];
            for row in 0..sum.n_rows() {
                for term in &terms {
                    let entries = sum.row_mut(row).iter_mut().zip(term.row(row));
                    entries.for_each(|(sum, &value)| *sum += value);
                }
            }
        }
        Pass { r, sum }
    }
}

/// Which words the rows of a product are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The later ones: Ψ_k X.
    Later,
    /// The earlier ones: Ψ_kᵀ X.
    Earlier,
}

/// What [`Covariances::pass`] multiplies with, one matrix a lag.
pub(crate) struct Weights {
    pub(crate) right: Vec<Mat<f64>>,
    pub(crate) left: Vec<Mat<f64>>,
}

/// What [`Covariances::pass`] finds.
pub(crate) struct Pass<T> {
    pub(crate) r: Vec<Mat<f64>>,
    pub(crate) sum: Panel<T>,
}
