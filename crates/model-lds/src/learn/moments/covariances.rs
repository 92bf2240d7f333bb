//! The covariances Ψ_k of words k tokens apart. Learning needs nothing else.

use crate::linalg::compact_panel::CompactPanel;
use crate::linalg::panel::{Panel, times};
use crate::linalg::quantization::Quantize;
use crate::linalg::sums::cross;
use latens_math::linalg::Mat;

/// The covariances Ψ_k = 1/T' Σ_t w_{t+k} w_tᵀ of whitened words, k = 1, 2, …, through their products with tall
/// matrices.
///
/// Rows are the later words, columns the earlier ones. Ψ_0 = I − v vᵀ.
pub(crate) trait Covariances<T: Quantize>: Sync {
    fn n_types(&self) -> usize;

    /// The unit vector v, to which all whitened words are orthogonal.
    fn null_vector(&self) -> &[T];

    /// Overwrites n blocks X_j by their product with the block Hankel matrix, Y_i = Σ_j Ψ_{n+i−j} X_j, or for
    /// [`Side::Earlier`] with its transpose, Y_j = Σ_i Ψ_{n+i−j}ᵀ X_i.
    fn hankel_product(&self, side: Side, x: &mut [CompactPanel<T>]);

    /// One block of [`Covariances::hankel_product`].
    fn hankel_block(&self, side: Side, x: &[CompactPanel<T>], block: usize) -> CompactPanel<T>;

    /// Ψ_k X, or Ψ_kᵀ X.
    fn product(&self, lag: usize, side: Side, x: &Panel<T>) -> Panel<T>;

    /// One pass over the covariances up to lag `n_lags`: R_k = Cᵀ Ψ_k C of each lag and, if there are weights,
    /// Σ_k (Ψ_k C right_k + Ψ_kᵀ C left_k).
    fn pass(&self, c: &Panel<T>, n_lags: usize, weights: Option<&LagWeights>) -> LagSums<T> {
        let mut sum = Panel::zeros(c.n_rows(), c.n_cols());
        let mut r = Vec::new();
        for lag in 1..=n_lags {
            let later = self.product(lag, Side::Later, c);
            r.push(cross(c.view(), later.view()));
            let Some(LagWeights { right, left }) = weights else { continue };
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
        LagSums { r, sum }
    }
}

/// The words that the rows of a product stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The later words: Ψ_k X.
    Later,
    /// The earlier words: Ψ_kᵀ X.
    Earlier,
}

impl Side {
    pub(crate) fn other(self) -> Side {
        match self {
            Side::Later => Side::Earlier,
            Side::Earlier => Side::Later,
        }
    }
}

/// The weights of [`Covariances::pass`], one matrix per lag.
pub(crate) struct LagWeights {
    pub(crate) right: Vec<Mat<f64>>,
    pub(crate) left: Vec<Mat<f64>>,
}

/// The results of [`Covariances::pass`].
pub(crate) struct LagSums<T> {
    /// R_k, k = 1, 2, ….
    pub(crate) r: Vec<Mat<f64>>,
    /// The weighted sum.
    pub(crate) sum: Panel<T>,
}
