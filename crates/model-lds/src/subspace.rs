//! The first model: subspace identification from the block Hankel matrix of covariances.
//!
//! Block (i, j) of the matrix, r × r blocks, is Ψ_{r+i−j} = C A^{i} · A^{r−1−j} Gx, so its singular value
//! decomposition factors it into what follows from a state and how states follow from words. The matrix is
//! never formed: a randomised decomposition needs only products with it.

use crate::canonical::{Canonical, Margins, regauge};
use crate::covariances::Covariances;
use crate::dense::{NumericError, eigen, identity, product, spectral_radius, symmetric, trace};
use crate::lu::{inverse, solve, solve_right};
use crate::panel::{Panel, times};
use crate::solvers::lyapunov;
use crate::sums::{cross, gram};
use faer::{Mat, MatRef};
use latens_math::{Real, Rng};
use rayon::prelude::*;

/// How the decomposition is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sketch {
    /// Columns besides those that are wanted.
    pub(crate) n_extra: usize,
    /// How often the basis is multiplied by the matrix and its transpose.
    pub(crate) n_powers: usize,
    pub(crate) seed: u64,
}

/// U diag(s) Vᵀ with U = `basis` · `left` and V = `image` · `left` · diag(1/s): the tall factors stay as they
/// are, blocks of rows side by side.
pub(crate) struct Decomposition<T> {
    basis: Panel<T>,
    image: Panel<T>,
    left: Mat<f64>,
    pub(crate) values: Vec<f64>,
    n_blocks: usize,
}

/// The largest singular values and vectors of the Hankel matrix (Halko, Martinsson and Tropp 2011).
/// `step` is called after each product and says whether to go on.
pub(crate) fn decompose<T: Real, E: From<NumericError>>(
    covariances: &impl Covariances<T>,
    n_blocks: usize,
    dim: usize,
    sketch: Sketch,
    step: &mut dyn FnMut() -> Result<(), E>,
) -> Result<Decomposition<T>, E> {
    let n_types = covariances.n_types();
    let width = (dim + sketch.n_extra).next_multiple_of(16).min(n_types * n_blocks);
    let mut basis = covariances.hankel(n_blocks, random(n_types, n_blocks * width, sketch.seed));
    step()?;
    for _ in 0..sketch.n_powers {
        orthonormalise(&mut basis, width)?;
        basis = covariances.transposed_hankel(n_blocks, basis);
        step()?;
        orthonormalise(&mut basis, width)?;
        basis = covariances.hankel(n_blocks, basis);
        step()?;
    }
    orthonormalise(&mut basis, width)?;
    let image = covariances.transposed_hankel(n_blocks, basis.clone());
    step()?;
    let squares = eigen(&gram(image.cut(width)), "the covariances")?;
    let dim = dim.min(width);
    let largest = |i: usize| squares.values[width - 1 - i].max(0.0).sqrt();
    let left = Mat::from_fn(width, dim, |i, j| squares.vectors[(i, width - 1 - j)]);
    Ok(Decomposition { basis, image, left, values: (0..dim).map(largest).collect(), n_blocks })
}

/// Normal numbers, each row from a stream of its own.
fn random<T: Real>(n_rows: usize, n_cols: usize, seed: u64) -> Panel<T> {
    let mut panel = Panel::compact(n_rows, n_cols);
    panel.par_blocks(1).for_each(|(row, values)| {
        let mut rng = Rng::stream(seed, row as u64);
        values.iter_mut().for_each(|value| *value = T::of(rng.normal()));
    });
    panel
}

/// Makes the columns orthonormal; those that depend on others become zero.
fn orthonormalise<T: Real>(x: &mut Panel<T>, width: usize) -> Result<(), NumericError> {
    let gram = gram(x.cut(width));
    let eigen = eigen(&gram, "the covariances")?;
    let least = 1e-13 * eigen.greatest();
    let factors: Vec<f64> = eigen
        .values
        .iter()
        .map(|&value| if value > least && value > 0.0 { 1.0 / value.sqrt() } else { 0.0 })
        .collect();
    x.times_in_place(&crate::dense::scale_columns(&eigen.vectors, &factors));
    Ok(())
}

/// What the choices along the way were; for tests and warnings.
#[derive(Clone, Debug)]
pub(crate) struct Identified<T> {
    pub(crate) model: Canonical<T>,
    /// The smallest eigenvalue of the state's covariance, and of its noise, before the floors.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests look at it"))]
    pub(crate) least: [f64; 2],
}

/// How strongly the state's covariance is pulled to the singular values where A says little of it.
const PULL: f64 = 1e-2;
/// The least eigenvalue of the state's covariance, as a share of the largest.
const STATE_FLOOR: f64 = 1e-4;
/// The least eigenvalue of the state's noise, as a share of the mean variance.
const NOISE_FLOOR: f64 = 1e-3;
/// The largest modulus of an eigenvalue of A.
const RADIUS: f64 = 0.98;

impl<T: Real> Decomposition<T> {
    fn dim(&self) -> usize {
        self.left.ncols()
    }

    fn width(&self) -> usize {
        self.left.nrows()
    }

    fn block<'a>(&self, panel: &'a Panel<T>, block: usize) -> MatRef<'a, T> {
        panel.columns(block * self.width()..(block + 1) * self.width())
    }

    /// Δ_jᵀ = image_j · this, of Δ = S^½ Vᵀ.
    fn image_to_delta(&self) -> Mat<f64> {
        let factors: Vec<f64> = self.values.iter().map(|s| 1.0 / s.max(1e-300).sqrt()).collect();
        crate::dense::scale_columns(&self.left, &factors)
    }

    /// The fewest dimensions that carry all: singular values below 10⁻⁶ of the largest are rounding.
    pub(crate) fn rank(&self) -> usize {
        let least = 1e-6 * self.values.first().copied().unwrap_or(0.0);
        self.values.iter().take_while(|&&value| value > least && value > 0.0).count()
    }

    /// Δ_j Δ_kᵀ.
    fn deltas(&self, j: usize, k: usize) -> Mat<f64> {
        let cross = cross(self.block(&self.image, j), self.block(&self.image, k));
        let half = self.image_to_delta();
        product([half.transpose(), cross.as_ref(), half.as_ref()])
    }

    /// A = Δ_{1:r−1} Δ_{2:r}⁺, and the same as a regression on all blocks but one.
    pub(crate) fn transition(&self) -> Result<Mat<f64>, NumericError> {
        let (n, r) = (self.dim(), self.n_blocks);
        let (mut ahead, mut own) = (Mat::zeros(n, n), Mat::zeros(n, n));
        for j in 1..r {
            ahead += &self.deltas(j - 1, j);
            own += &self.deltas(j, j);
        }
        solve_right(&ahead, &symmetric(&own), "the covariance of the states")
    }

    /// C = (Σ_i Γ_i (A^i)ᵀ)(Σ_i A^i (A^i)ᵀ)⁻¹ of Γ = U S^½: a regression on all blocks.
    pub(crate) fn emission(&self, a: &Mat<f64>) -> Result<Panel<T>, NumericError> {
        let (n, width) = (self.dim(), self.width());
        let roots: Vec<f64> = self.values.iter().map(|s| s.sqrt()).collect();
        let gamma = crate::dense::scale_columns(&self.left, &roots);
        let (mut powers, mut squares) = (vec![identity(n)], identity(n));
        for i in 1..self.n_blocks {
            powers.push(product([powers[i - 1].as_ref(), a.as_ref()]));
            squares += &product([powers[i].as_ref(), powers[i].transpose()]);
        }
        let squares = inverse(&squares, "the powers of A")?;
        let mut weights = Mat::zeros(self.n_blocks * width, n);
        for (i, power) in powers.iter().enumerate() {
            let weight = product([gamma.as_ref(), power.transpose(), squares.as_ref()]);
            weights.as_mut().subrows_mut(i * width, width).copy_from(weight);
        }
        Ok(times(self.basis.view(), &weights))
    }

    /// The model that the decomposition stands for.
    pub(crate) fn identify(&self, v: &[T]) -> Result<Identified<T>, NumericError> {
        let mut a = self.transition()?;
        let c = self.emission(&a)?;
        let radius = spectral_radius(&a, "A")?;
        if radius > RADIUS {
            a = faer::Scale(RADIUS / radius) * &a;
        }
        let (covariance, least_state) = self.state_covariance(&a, &c)?;
        let (noise, least_noise) = noise(&a, &covariance)?;
        let stationary = symmetric(&lyapunov(&a, &noise)?);
        let (a, factor) = regauge(&a, &stationary)?;
        let c = times(c.view(), &factor);
        let model = Canonical::new(a, c, v, Margins::FIRST)?;
        Ok(Identified { model, least: [least_state, least_noise] })
    }

    /// Σ with A Σ Cᵀ = Gx = Δ_r, the covariance of a state and the word before it: symmetric least
    /// squares, pulled to diag(s) where A leaves it open. The least eigenvalue before the floor comes too.
    fn state_covariance(
        &self,
        a: &Mat<f64>,
        c: &Panel<T>,
    ) -> Result<(Mat<f64>, f64), NumericError> {
        let g = gram(c.view());
        let last = cross(self.block(&self.image, self.n_blocks - 1), c.view());
        let gx_c = product([self.image_to_delta().transpose(), last.as_ref()]);
        // F = Gx C G⁻¹ is A Σ if the model holds.
        let f = solve(&g, &gx_c.transpose().to_owned(), "the covariance of the words' vectors")?;
        let f_a = product([f.as_ref(), a.as_ref()]);
        let squares = eigen(&symmetric(&product([a.transpose(), a.as_ref()])), "A")?;
        let pull = PULL * squares.greatest();
        let n = self.dim();
        let right = Mat::from_fn(n, n, |i, j| {
            f_a[(i, j)] + f_a[(j, i)] + if i == j { 2.0 * pull * self.values[i] } else { 0.0 }
        });
        let u = &squares.vectors;
        let turned = product([u.transpose(), right.as_ref(), u.as_ref()]);
        let values = &squares.values;
        let solved =
            Mat::from_fn(n, n, |i, j| turned[(i, j)] / (values[i] + values[j] + 2.0 * pull));
        let covariance = symmetric(&product([u.as_ref(), solved.as_ref(), u.transpose()]));
        let eigen = eigen(&covariance, "the covariance of the states")?;
        let floor = STATE_FLOOR * eigen.greatest();
        Ok((eigen.map(|value| value.max(floor)), eigen.least()))
    }
}

/// Q = Σ − A Σ Aᵀ, with a floor under its eigenvalues; and the least of them before.
fn noise(a: &Mat<f64>, covariance: &Mat<f64>) -> Result<(Mat<f64>, f64), NumericError> {
    let noise =
        symmetric(&(covariance - product([a.as_ref(), covariance.as_ref(), a.transpose()])));
    let eigen = eigen(&noise, "the noise of the states")?;
    let floor = NOISE_FLOOR * trace(covariance) / a.nrows() as f64;
    Ok((eigen.map(|value| value.max(floor)), eigen.least()))
}
