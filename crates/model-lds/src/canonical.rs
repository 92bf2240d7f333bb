//! The canonical gauge, in which the state's stationary covariance is the identity. Then a model is two
//! matrices, A and C, and is a proper one if no singular value of either reaches one.

use crate::asos::Expectations;
use crate::dense::{
    NumericError, cholesky, eigen, identity, inverse_lower, product, scale_columns, symmetric,
};
use crate::panel::{Factor, Panel, times, view, view_mut};
use crate::steady::Dynamics;
use crate::sums::{cross, gram};
use latens_math::Real;
use latens_math::linalg::{Accum, Mat, Scale, matmul};
use rayon::prelude::*;

/// How far singular values stay from one: of A, and of C.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Margins {
    pub(crate) a: f64,
    pub(crate) c: f64,
}

impl Margins {
    /// For a first model, which is rough.
    pub(crate) const FIRST: Margins = Margins { a: 1e-4, c: 1e-2 };
    /// For every later one.
    pub(crate) const EM: Margins = Margins { a: 1e-4, c: 1e-4 };
}

/// A model in the canonical gauge.
#[derive(Clone, Debug)]
pub(crate) struct Canonical<T> {
    pub(crate) a: Mat<f64>,
    pub(crate) c: Panel<T>,
    /// Cᵀ C.
    pub(crate) g: Mat<f64>,
    /// How many singular values had to be cut.
    pub(crate) n_clipped: usize,
}

impl<T: Real> Canonical<T> {
    /// The model with these matrices, put right: C orthogonal to `v`, singular values below one.
    pub(crate) fn new(
        a: Mat<f64>,
        mut c: Panel<T>,
        v: &[T],
        margins: Margins,
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

    /// A model that was put right before.
    pub(crate) fn restored(a: Mat<f64>, c: Panel<T>) -> Canonical<T> {
        let g = gram(c.view());
        Canonical { a, c, g, n_clipped: 0 }
    }

    pub(crate) fn dynamics(&self) -> Dynamics {
        Dynamics::canonical(self.a.clone(), self.g.clone())
    }

    /// The M step: A = L⁻¹ E[x_{t+1} x_tᵀ] L⁻ᵀ and C = E[w xᵀ] L⁻ᵀ with E[x xᵀ] = L Lᵀ.
    pub(crate) fn m_step(
        &self,
        expected: Expectations<T>,
        v: &[T],
    ) -> Result<Canonical<T>, NumericError> {
        let factor = inverse_lower(&cholesky(&expected.state, "the covariance of the states")?);
        let a = product([factor.as_ref(), expected.next_state.as_ref(), factor.transpose()]);
        let from_c = product([expected.words_from_c.as_ref(), factor.transpose()]);
        let words = &factor.transpose().to_owned();
        let c = combine(expected.words, words, &self.c, &from_c);
        Canonical::new(a, c, v, Margins::EM)
    }

    /// The same model with the state turned so that G is diagonal, descending, and the largest entry of
    /// each column of C positive: equal models have equal numbers then. The rotation comes with it.
    pub(crate) fn rotated(&self) -> Result<(Canonical<T>, Mat<f64>), NumericError> {
        let n = self.a.nrows();
        let ascending = eigen(&self.g, "C")?.vectors;
        let rotation = Mat::from_fn(n, n, |i, j| ascending[(i, n - 1 - j)]);
        let mut c = times(self.c.view(), &rotation);
        let mut largest = vec![T::zero(); n];
        for row in 0..c.n_rows() {
            for (largest, &value) in largest.iter_mut().zip(c.row(row)) {
                if num(value) > num(*largest) {
                    *largest = value;
                }
            }
        }
        let signs: Vec<f64> =
            largest.iter().map(|value| if value.wide() < 0.0 { -1.0 } else { 1.0 }).collect();
        let rotation = scale_columns(&rotation, &signs);
        c.scale_columns(&signs.iter().map(|&sign| T::of(sign)).collect::<Vec<_>>());
        let turned = Canonical {
            a: turn(&self.a, &rotation),
            g: gram(c.view()),
            c,
            n_clipped: self.n_clipped,
        };
        Ok((turned, rotation))
    }
}

/// Rᵀ X R.
pub(crate) fn turn(x: &Mat<f64>, rotation: &Mat<f64>) -> Mat<f64> {
    product([rotation.transpose(), x.as_ref(), rotation.as_ref()])
}

fn num<T: Real>(value: T) -> f64 {
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

/// The matrix that cuts the singular values of X at √(1 − margin), if any is larger, from Xᵀ X.
fn clip(
    gram: &Mat<f64>,
    margin: f64,
    name: &'static str,
) -> Result<(Option<Mat<f64>>, usize), NumericError> {
    let limit = 1.0 - margin;
    // Whether there is anything to cut is much cheaper to know than what.
    let room = Scale(limit) * identity(gram.nrows()) - gram;
    if cholesky(&symmetric(&room), name).is_ok() {
        return Ok((None, 0));
    }
    let eigen = eigen(&symmetric(gram), name)?;
    let n = eigen.values.iter().filter(|&&value| value > limit).count();
    let clip = eigen.map(|value| if value > limit { (limit / value).sqrt() } else { 1.0 });
    Ok(((n > 0).then_some(clip), n))
}

/// x · of_x + c · of_c, in place of x.
fn combine<T: Real>(mut x: Panel<T>, of_x: &Mat<f64>, c: &Panel<T>, of_c: &Mat<f64>) -> Panel<T> {
    let (n, stride) = (x.n_cols(), x.stride());
    let (of_x, of_c) = (Factor::<T>::new(of_x.as_ref()), Factor::<T>::new(of_c.as_ref()));
    x.par_blocks(256).for_each(|(first, block)| {
        let (copy, n_rows) = (block.to_vec(), block.len() / stride);
        let mut out = view_mut(block, n_rows, n, stride);
        let (x, c) = (view(&copy, n_rows, n, stride), c.view().subrows(first, n_rows));
        matmul(out.as_mut(), Accum::Replace, x, of_x.view());
        matmul(out, Accum::Add, c, of_c.view());
    });
    x
}

/// The model (A, C) with the stationary covariance Π, in the canonical gauge: A ← L⁻¹ A L and C ← C L with
/// Π = L Lᵀ.
pub(crate) fn regauge(
    a: &Mat<f64>,
    covariance: &Mat<f64>,
) -> Result<(Mat<f64>, Mat<f64>), NumericError> {
    let factor = cholesky(covariance, "the covariance of the states")?;
    let inverse = inverse_lower(&factor);
    Ok((product([inverse.as_ref(), a.as_ref(), factor.as_ref()]), factor))
}
