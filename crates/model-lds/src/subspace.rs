//! The first model: subspace identification from the block Hankel matrix of covariances.
//!
//! Block (i, j) of the matrix, r × r blocks, is Ψ_{r+i−j} = C A^{i} · A^{r−1−j} Gx, so its singular value
//! decomposition factors it into what follows from a state and how states follow from words. The matrix is
//! never formed: a randomised decomposition needs only products with it.

use crate::canonical::{Canonical, Margins, regauge};
use crate::covariances::{Covariances, Side};
use crate::dense::{
    NumericError, eigen, identity, product, scale_columns, spectral_radius, symmetric, trace,
};
use crate::lu::{inverse, solve, solve_right};
use crate::memory;
use crate::packed::Packed;
use crate::packed_products as packed;
use crate::packing::Packing;
use crate::panel::Panel;
use crate::solvers::lyapunov;
use crate::sums::gram;
use latens_math::Rng;
use latens_math::linalg::{Mat, Scale};

/// How the decomposition is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sketch {
    /// Columns besides those that are wanted.
    pub(crate) n_extra: usize,
    /// How often the basis is multiplied by the matrix and its transpose.
    pub(crate) n_powers: usize,
    pub(crate) seed: u64,
}

/// U diag(s) Vᵀ with U = `basis` · `left` and V = Hᵀ · `basis` · `left` · diag(1/s): the tall factor stays as it
/// is, in blocks of rows. Of Hᵀ · `basis`, the image, all that is needed are products of its blocks.
pub(crate) struct Decomposition<T: Packing> {
    basis: Vec<Packed<T>>,
    image: Image<T>,
    left: Mat<f64>,
    pub(crate) values: Vec<f64>,
}

/// The largest singular values and vectors of the Hankel matrix (Halko, Martinsson and Tropp 2011).
/// `step` is called after each product and says whether to go on.
pub(crate) fn decompose<T: Packing, E: From<NumericError>>(
    covariances: &impl Covariances<T>,
    n_blocks: usize,
    dim: usize,
    sketch: Sketch,
    step: &mut dyn FnMut() -> Result<(), E>,
) -> Result<Decomposition<T>, E> {
    let n_types = covariances.n_types();
    let width = memory::width(dim, sketch.n_extra).min(n_types * n_blocks);
    let strip = memory::first_model_strip(dim, width, n_blocks);
    let mut basis = random((n_types, width), n_blocks, strip, sketch.seed);
    covariances.hankel(Side::Later, &mut basis);
    step()?;
    for _ in 0..sketch.n_powers {
        for side in [Side::Earlier, Side::Later] {
            orthonormalise(&mut basis)?;
            covariances.hankel(side, &mut basis);
            step()?;
        }
    }
    orthonormalise(&mut basis)?;
    let image = Image::new(covariances, &basis);
    step()?;
    let squares = eigen(&image.squares(0), "the covariances")?;
    let dim = dim.min(width);
    let largest = |i: usize| squares.values[width - 1 - i].max(0.0).sqrt();
    let left = Mat::from_fn(width, dim, |i, j| squares.vectors[(i, width - 1 - j)]);
    Ok(Decomposition { basis, image, left, values: (0..dim).map(largest).collect() })
}

/// Normal numbers, each row of all blocks from a stream of its own.
fn random<T: Packing>(
    shape: (usize, usize),
    n_blocks: usize,
    strip: usize,
    seed: u64,
) -> Vec<Packed<T>> {
    Packed::side_by_side(n_blocks, shape, strip, |row, out| {
        let mut rng = Rng::stream(seed, row as u64);
        out.iter_mut().for_each(|value| *value = T::of(rng.normal()));
    })
}

/// Makes the columns orthonormal; those that depend on others become zero.
fn orthonormalise<T: Packing>(x: &mut [Packed<T>]) -> Result<(), NumericError> {
    let eigen = eigen(&packed::gram(x), "the covariances")?;
    // The Gram matrix has squares of what was rounded.
    let least = (4.0 * T::ROUNDING.powi(2)).max(1e-13) * eigen.greatest();
    let factors: Vec<f64> = eigen
        .values
        .iter()
        .map(|&value| if value > least && value > 0.0 { 1.0 / value.sqrt() } else { 0.0 })
        .collect();
    let factor = scale_columns(&eigen.vectors, &factors);
    x.iter_mut().for_each(|block| block.times_in_place(&factor));
    Ok(())
}

/// Products of the blocks of Hᵀ · `basis`, made one after the other.
struct Image<T: Packing> {
    /// Each block with itself.
    own: Vec<Mat<f64>>,
    /// Each but the first with the one before it: block_{j−1}ᵀ · block_j.
    ahead: Vec<Mat<f64>>,
    last: Packed<T>,
}

impl<T: Packing> Image<T> {
    fn new(covariances: &impl Covariances<T>, basis: &[Packed<T>]) -> Image<T> {
        let block = |j: usize| covariances.hankel_block(Side::Earlier, basis, j);
        let own = |block: &Packed<T>| packed::gram(std::slice::from_ref(block));
        let last = block(0);
        let mut image = Image { own: vec![own(&last)], ahead: Vec::new(), last };
        for j in 1..basis.len() {
            let next = block(j);
            image.ahead.push(packed::cross(&image.last, &next));
            image.own.push(own(&next));
            image.last = next;
        }
        image
    }

    /// Σ block_jᵀ · block_j from some block on.
    fn squares(&self, first: usize) -> Mat<f64> {
        sum(&self.own[first..])
    }
}

fn sum(matrices: &[Mat<f64>]) -> Mat<f64> {
    let (first, others) = matrices.split_first().expect("there are two blocks at least");
    others.iter().fold(first.clone(), |sum, matrix| sum + matrix)
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

impl<T: Packing> Decomposition<T> {
    fn dim(&self) -> usize {
        self.left.ncols()
    }

    /// Δ_jᵀ = image_j · this, of Δ = S^½ Vᵀ.
    fn image_to_delta(&self) -> Mat<f64> {
        let factors: Vec<f64> = self.values.iter().map(|s| 1.0 / s.max(1e-300).sqrt()).collect();
        scale_columns(&self.left, &factors)
    }

    /// The fewest dimensions that carry all; the others' singular values are rounding.
    pub(crate) fn rank(&self) -> usize {
        let least = (2.0 * T::ROUNDING).max(1e-6) * self.values.first().copied().unwrap_or(0.0);
        self.values.iter().take_while(|&&value| value > least && value > 0.0).count()
    }

    /// A = Δ_{1:r−1} Δ_{2:r}⁺: a regression on all blocks but one.
    pub(crate) fn transition(&self) -> Result<Mat<f64>, NumericError> {
        let half = self.image_to_delta();
        let deltas = |image: Mat<f64>| product([half.transpose(), image.as_ref(), half.as_ref()]);
        let (ahead, own) = (deltas(sum(&self.image.ahead)), deltas(self.image.squares(1)));
        solve_right(&ahead, &symmetric(&own), "the covariance of the states")
    }

    /// C = (Σ_i Γ_i (A^i)ᵀ)(Σ_i A^i (A^i)ᵀ)⁻¹ of Γ = U S^½: a regression on all blocks.
    pub(crate) fn emission(&self, a: &Mat<f64>) -> Result<Panel<T>, NumericError> {
        let n = self.dim();
        let roots: Vec<f64> = self.values.iter().map(|s| s.sqrt()).collect();
        let gamma = scale_columns(&self.left, &roots);
        let (mut powers, mut squares) = (vec![identity(n)], identity(n));
        for i in 1..self.basis.len() {
            powers.push(product([powers[i - 1].as_ref(), a.as_ref()]));
            squares += &product([powers[i].as_ref(), powers[i].transpose()]);
        }
        let squares = inverse(&squares, "the powers of A")?;
        let weight =
            |power: &Mat<f64>| product([gamma.as_ref(), power.transpose(), squares.as_ref()]);
        let weights: Vec<Mat<f64>> = powers.iter().map(weight).collect();
        Ok(packed::times(&self.basis, &weights))
    }

    /// The model that the decomposition stands for.
    pub(crate) fn identify(&self, v: &[T]) -> Result<Identified<T>, NumericError> {
        let mut a = self.transition()?;
        let mut c = self.emission(&a)?;
        let radius = spectral_radius(&a, "A")?;
        if radius > RADIUS {
            a = Scale(RADIUS / radius) * &a;
        }
        let (covariance, least_state) = self.state_covariance(&a, &c)?;
        let (noise, least_noise) = noise(&a, &covariance)?;
        let stationary = symmetric(&lyapunov(&a, &noise)?);
        let (a, factor) = regauge(&a, &stationary)?;
        c.times_in_place(&factor);
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
        let last = packed::cross_with_panel(&self.image.last, c);
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
