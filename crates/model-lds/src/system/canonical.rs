//! The canonical gauge, in which the stationary covariance of the state is the identity.
//!
//! In this gauge a model consists of two matrices, A and C, and is valid if all their singular values are below 1.

use crate::linalg::dense::{
    cholesky, eigen, identity, inverse_lower, product, scale_columns, symmetric,
};
use crate::linalg::error::NumericError;
use crate::linalg::panel::{Panel, times, view};
use crate::linalg::sums::{cross, gram};
use crate::system::steady_state::Dynamics;
use latens_math::Real;
use latens_math::linalg::{Mat, Scale};
use rayon::prelude::*;

/// Distances from 1 at which the squared singular values of A and of C are clipped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClipMargins {
    pub(crate) a: f64,
    pub(crate) c: f64,
}

impl ClipMargins {
    /// For the initial model, which is rough.
    pub(crate) const INITIAL: ClipMargins = ClipMargins { a: 1e-4, c: 1e-2 };
    /// For models after an M step.
    pub(crate) const EM: ClipMargins = ClipMargins { a: 1e-4, c: 1e-4 };
}

/// A model in the canonical gauge.
#[derive(Clone, Debug)]
pub(crate) struct Canonical<T> {
    pub(crate) a: Mat<f64>,
    pub(crate) c: Panel<T>,
    /// Cᵀ C.
    pub(crate) g: Mat<f64>,
    /// Number of singular values that were clipped.
    pub(crate) n_clipped: usize,
}

impl<T: Real> Canonical<T> {
    /// Makes A and C a valid model: projects C to be orthogonal to `v`, and clips singular values.
    pub(crate) fn new(
        a: Mat<f64>,
        mut c: Panel<T>,
        v: &[T],
        margins: ClipMargins,
    ) -> Result<Canonical<T>, NumericError> {
        project(&mut c, v);
        let mut g = gram(c.view());
        let (clip_a, n_a) = clip(&product([a.transpose(), a.as_ref()]), margins.a, "A")?;
        let (clip_c, n_c) = clip(&g, margins.c, "C")?;
        let a = clip_a.map_or_else(|| a.clone(), |clip| product([a.as_ref(), clip.as_ref()]));
        if let Some(clip) = clip_c {
            c.times_in_place(&clip);
            g = gram(c.view());
        }
        Ok(Canonical { a, c, g, n_clipped: n_a + n_c })
    }

    /// A model whose matrices are valid already, as those of a file.
    pub(crate) fn restored(a: Mat<f64>, c: Panel<T>) -> Canonical<T> {
        let g = gram(c.view());
        Canonical { a, c, g, n_clipped: 0 }
    }

    /// Whether no singular value of A or C is above 1 by more than rounding.
    pub(crate) fn is_contraction(&self) -> Result<bool, NumericError> {
        let largest = |x: &Mat<f64>, name| -> Result<f64, NumericError> {
            Ok(eigen(x, name)?.values.last().copied().unwrap_or(0.0))
        };
        let of_a = largest(&product([self.a.transpose(), self.a.as_ref()]), "A")?;
        Ok(of_a <= 1.0 + 1e-3 && largest(&self.g, "C")? <= 1.0 + 1e-3)
    }

    pub(crate) fn dynamics(&self) -> Dynamics {
        Dynamics::canonical(self.a.clone(), self.g.clone())
    }

    /// The same model with the state rotated so that G is diagonal, in descending order, and the entry of largest
    /// magnitude in each column of C is positive; also returns the rotation.
    ///
    /// Equivalent models have equal matrices in this form.
    pub(crate) fn rotated(&self) -> Result<(Canonical<T>, Mat<f64>), NumericError> {
        let n = self.a.nrows();
        let ascending = eigen(&self.g, "C")?.vectors;
        let rotation = Mat::from_fn(n, n, |i, j| ascending[(i, n - 1 - j)]);
        let mut c = times(self.c.view(), &rotation);
        let mut largest = vec![T::zero(); n];
        for row in 0..c.n_rows() {
            for (largest, &value) in largest.iter_mut().zip(c.row(row)) {
                if magnitude(value) > magnitude(*largest) {
                    *largest = value;
                }
            }
        }
        let signs: Vec<f64> =
            largest.iter().map(|value| if value.wide() < 0.0 { -1.0 } else { 1.0 }).collect();
        let rotation = scale_columns(&rotation, &signs);
        c.scale_columns(&signs.iter().map(|&sign| T::of(sign)).collect::<Vec<_>>());
        let rotated = Canonical {
            a: rotate(&self.a, &rotation),
            g: gram(c.view()),
            c,
            n_clipped: self.n_clipped,
        };
        Ok((rotated, rotation))
    }
}

/// Rᵀ X R.
pub(crate) fn rotate(x: &Mat<f64>, rotation: &Mat<f64>) -> Mat<f64> {
    product([rotation.transpose(), x.as_ref(), rotation.as_ref()])
}

fn magnitude<T: Real>(value: T) -> f64 {
    value.wide().abs()
}

/// X ← X − v (vᵀ X).
fn project<T: Real>(x: &mut Panel<T>, v: &[T]) {
    let column = view(v, v.len(), 1, 1);
    let along = cross(column, x.view());
    let along: Vec<T> = (0..x.n_cols()).map(|j| T::of(along[(0, j)])).collect();
    let stride = x.stride();
    x.par_blocks(512).for_each(|(first, block)| {
        for (row, &v) in block.chunks_exact_mut(stride).zip(&v[first..]) {
            row.iter_mut().zip(&along).for_each(|(value, &along)| *value -= v * along);
        }
    });
}

/// The matrix that clips the singular values of X at √(1 − margin), computed from Xᵀ X, and the number of singular
/// values that it clips.
fn clip(
    gram: &Mat<f64>,
    margin: f64,
    name: &'static str,
) -> Result<(Option<Mat<f64>>, usize), NumericError> {
    let limit = 1.0 - margin;
    // A Cholesky factorization shows whether anything must be clipped, and is much cheaper than eigenvalues.
    let room = Scale(limit) * identity(gram.nrows()) - gram;
    if cholesky(&symmetric(&room), name).is_ok() {
        return Ok((None, 0));
    }
    let eigen = eigen(&symmetric(gram), name)?;
    let n = eigen.values.iter().filter(|&&value| value > limit).count();
    let clip = eigen.map(|value| if value > limit { (limit / value).sqrt() } else { 1.0 });
    Ok(((n > 0).then_some(clip), n))
}

/// L⁻¹ A L and L, where Π = L Lᵀ is the stationary covariance. They take the model (A, C) to the canonical gauge:
/// A ← L⁻¹ A L and C ← C L.
pub(crate) fn regauge(
    a: &Mat<f64>,
    covariance: &Mat<f64>,
) -> Result<(Mat<f64>, Mat<f64>), NumericError> {
    let factor = cholesky(covariance, "the covariance of the states")?;
    let inverse = inverse_lower(&factor);
    Ok((product([inverse.as_ref(), a.as_ref(), factor.as_ref()]), factor))
}
