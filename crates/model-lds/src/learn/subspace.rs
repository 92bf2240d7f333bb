//! The initial model: subspace identification from the block Hankel matrix of covariances.
//!
//! The matrix has r × r blocks; block (i, j) is Ψ_{r+i−j} = C A^{i} · A^{r−1−j} Gx. Its singular value decomposition
//! therefore gives an observability factor (words from a state) and a reachability factor (a state from words). The
//! matrix is never formed: a randomized decomposition needs only products with it.

use crate::learn::memory_budget;
use crate::learn::moments::covariances::{Covariances, Side};
use crate::linalg::compact_panel::{CompactPanel, Shape};
use crate::linalg::compact_products;
use crate::linalg::dense::{
    eigen, identity, product, scale_columns, spectral_radius, symmetric, trace,
};
use crate::linalg::error::NumericError;
use crate::linalg::lu::{inverse, solve, solve_right};
use crate::linalg::panel::Panel;
use crate::linalg::quantization::Quantize;
use crate::linalg::solvers::lyapunov;
use crate::linalg::sums::gram;
use crate::system::canonical::{Canonical, ClipMargins, regauge};
use latens_math::Rng;
use latens_math::linalg::{Mat, Scale};

/// Settings of the randomized decomposition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sketch {
    /// Number of columns beyond the requested dimensions.
    pub(crate) n_oversamples: usize,
    /// Number of power iterations.
    pub(crate) n_power_iterations: usize,
    /// Random seed.
    pub(crate) seed: u64,
}

/// The decomposition U diag(s) Vᵀ, with U = `basis` · `left` and V = Hᵀ · `basis` · `left` · diag(1/s).
///
/// The tall factor `basis` is kept in blocks of rows. Of the image Hᵀ · `basis`, only products of its blocks are
/// needed.
pub(crate) struct Decomposition<T: Quantize> {
    basis: Vec<CompactPanel<T>>,
    image: Image<T>,
    left: Mat<f64>,
    pub(crate) values: Vec<f64>,
}

/// The `dim` largest singular values and vectors of the Hankel matrix (Halko, Martinsson and Tropp 2011).
///
/// `step` is called after each product; an error stops the decomposition.
pub(crate) fn decompose<T: Quantize, E: From<NumericError>>(
    covariances: &impl Covariances<T>,
    n_blocks: usize,
    dim: usize,
    sketch: Sketch,
    step: &mut dyn FnMut() -> Result<(), E>,
) -> Result<Decomposition<T>, E> {
    let n_types = covariances.n_types();
    let width = memory_budget::sketch_width(dim, sketch.n_oversamples).min(n_types * n_blocks);
    let strip = memory_budget::initial_model_strip(dim, width, n_blocks);
    let shape = Shape { n_rows: n_types, n_cols: width };
    let mut basis = random(shape, n_blocks, strip, sketch.seed);
    covariances.hankel_product(Side::Later, &mut basis);
    step()?;
    for _ in 0..sketch.n_power_iterations {
        for side in [Side::Earlier, Side::Later] {
            orthonormalize(&mut basis)?;
            covariances.hankel_product(side, &mut basis);
            step()?;
        }
    }
    orthonormalize(&mut basis)?;
    let image = Image::new(covariances, &basis);
    step()?;
    let squares = eigen(&image.squares(0), "the covariances")?;
    let dim = dim.min(width);
    let largest = |i: usize| squares.values[width - 1 - i].max(0.0).sqrt();
    let left = Mat::from_fn(width, dim, |i, j| squares.vectors[(i, width - 1 - j)]);
    Ok(Decomposition { basis, image, left, values: (0..dim).map(largest).collect() })
}

/// Blocks of normal random numbers; each row, across all blocks, has a random stream of its own.
fn random<T: Quantize>(
    shape: Shape,
    n_blocks: usize,
    strip: usize,
    seed: u64,
) -> Vec<CompactPanel<T>> {
    CompactPanel::side_by_side(n_blocks, shape, strip, |row, out| {
        let mut rng = Rng::stream(seed, row as u64);
        out.iter_mut().for_each(|value| *value = T::of(rng.normal()));
    })
}

/// Makes the columns orthonormal; linearly dependent columns become zero.
fn orthonormalize<T: Quantize>(x: &mut [CompactPanel<T>]) -> Result<(), NumericError> {
    let eigen = eigen(&compact_products::gram(x), "the covariances")?;
    // The Gram matrix contains squares of the rounding errors.
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

/// Products of the blocks of Hᵀ · `basis`, computed one block at a time.
struct Image<T: Quantize> {
    /// block_jᵀ · block_j.
    own: Vec<Mat<f64>>,
    /// block_{j−1}ᵀ · block_j, for every block but the first.
    ahead: Vec<Mat<f64>>,
    /// The last block.
    last: CompactPanel<T>,
}

impl<T: Quantize> Image<T> {
    fn new(covariances: &impl Covariances<T>, basis: &[CompactPanel<T>]) -> Image<T> {
        let block = |j: usize| covariances.hankel_block(Side::Earlier, basis, j);
        let own = |block: &CompactPanel<T>| compact_products::gram(std::slice::from_ref(block));
        let last = block(0);
        let mut image = Image { own: vec![own(&last)], ahead: Vec::new(), last };
        for j in 1..basis.len() {
            let next = block(j);
            image.ahead.push(compact_products::cross(&image.last, &next));
            image.own.push(own(&next));
            image.last = next;
        }
        image
    }

    /// Σ_j block_jᵀ · block_j over j ≥ `first`.
    fn squares(&self, first: usize) -> Mat<f64> {
        sum(&self.own[first..])
    }
}

fn sum(matrices: &[Mat<f64>]) -> Mat<f64> {
    let (first, others) = matrices.split_first().expect("there are at least two blocks");
    others.iter().fold(first.clone(), |sum, matrix| sum + matrix)
}

/// The identified model, with intermediate results for tests.
#[derive(Clone, Debug)]
pub(crate) struct Identified<T> {
    pub(crate) model: Canonical<T>,
    /// Smallest eigenvalues of the state covariance and of the state noise, before the floors.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests read it"))]
    pub(crate) least: [f64; 2],
}

/// Strength of the ridge that pulls the state covariance to the singular values in directions that A leaves
/// undetermined.
const RIDGE: f64 = 1e-2;
/// Smallest eigenvalue of the state covariance, relative to the largest.
const STATE_FLOOR: f64 = 1e-4;
/// Smallest eigenvalue of the state noise, relative to the mean variance of the state.
const NOISE_FLOOR: f64 = 1e-3;
/// Largest spectral radius of A.
const MAX_RADIUS: f64 = 0.98;

impl<T: Quantize> Decomposition<T> {
    fn dim(&self) -> usize {
        self.left.ncols()
    }

    /// The matrix M with Δ_jᵀ = image_j · M, where Δ = S^½ Vᵀ.
    fn image_to_delta(&self) -> Mat<f64> {
        let factors: Vec<f64> = self.values.iter().map(|s| 1.0 / s.max(1e-300).sqrt()).collect();
        scale_columns(&self.left, &factors)
    }

    /// The numerical rank: the number of singular values above the rounding error.
    pub(crate) fn rank(&self) -> usize {
        let least = (2.0 * T::ROUNDING).max(1e-6) * self.values.first().copied().unwrap_or(0.0);
        self.values.iter().take_while(|&&value| value > least && value > 0.0).count()
    }

    /// A = Δ_{1:r−1} Δ_{2:r}⁺: least squares over all pairs of adjacent blocks.
    pub(crate) fn transition(&self) -> Result<Mat<f64>, NumericError> {
        let half = self.image_to_delta();
        let deltas = |image: Mat<f64>| product([half.transpose(), image.as_ref(), half.as_ref()]);
        let (ahead, own) = (deltas(sum(&self.image.ahead)), deltas(self.image.squares(1)));
        solve_right(&ahead, &symmetric(&own), "the covariance of the states")
    }

    /// C = (Σ_i Γ_i (A^i)ᵀ)(Σ_i A^i (A^i)ᵀ)⁻¹, where Γ = U S^½: least squares over all blocks.
    pub(crate) fn observation(&self, a: &Mat<f64>) -> Result<Panel<T>, NumericError> {
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
        Ok(compact_products::times(&self.basis, &weights))
    }

    /// The model identified by the decomposition.
    pub(crate) fn identify(&self, v: &[T]) -> Result<Identified<T>, NumericError> {
        let mut a = self.transition()?;
        let mut c = self.observation(&a)?;
        let radius = spectral_radius(&a, "A")?;
        if radius > MAX_RADIUS {
            a = Scale(MAX_RADIUS / radius) * &a;
        }
        let (covariance, least_state) = self.state_covariance(&a, &c)?;
        let (noise, least_noise) = noise(&a, &covariance)?;
        let stationary = symmetric(&lyapunov(&a, &noise)?);
        let (a, factor) = regauge(&a, &stationary)?;
        c.times_in_place(&factor);
        let model = Canonical::new(a, c, v, ClipMargins::INITIAL)?;
        Ok(Identified { model, least: [least_state, least_noise] })
    }

    /// The state covariance Σ with A Σ Cᵀ = Gx = Δ_r, the covariance of a state and the previous word; also returns
    /// its smallest eigenvalue before the floor.
    ///
    /// It is the symmetric least-squares solution, with a ridge toward diag(s).
    fn state_covariance(
        &self,
        a: &Mat<f64>,
        c: &Panel<T>,
    ) -> Result<(Mat<f64>, f64), NumericError> {
        let g = gram(c.view());
        let last = compact_products::cross_with_panel(&self.image.last, c);
        let gx_c = product([self.image_to_delta().transpose(), last.as_ref()]);
        // F = Gx C G⁻¹ is A Σ if the model holds.
        let f = solve(&g, &gx_c.transpose().to_owned(), "the Gram matrix of the word vectors")?;
        let f_a = product([f.as_ref(), a.as_ref()]);
        let squares = eigen(&symmetric(&product([a.transpose(), a.as_ref()])), "A")?;
        let ridge = RIDGE * squares.greatest();
        let n = self.dim();
        let right = Mat::from_fn(n, n, |i, j| {
            f_a[(i, j)] + f_a[(j, i)] + if i == j { 2.0 * ridge * self.values[i] } else { 0.0 }
        });
        let u = &squares.vectors;
        let rotated = product([u.transpose(), right.as_ref(), u.as_ref()]);
        let values = &squares.values;
        let solved =
            Mat::from_fn(n, n, |i, j| rotated[(i, j)] / (values[i] + values[j] + 2.0 * ridge));
        let covariance = symmetric(&product([u.as_ref(), solved.as_ref(), u.transpose()]));
        let eigen = eigen(&covariance, "the covariance of the states")?;
        let floor = STATE_FLOOR * eigen.greatest();
        Ok((eigen.map(|value| value.max(floor)), eigen.least()))
    }
}

/// Q = Σ − A Σ Aᵀ with a floor under its eigenvalues, and the smallest eigenvalue before the floor.
fn noise(a: &Mat<f64>, covariance: &Mat<f64>) -> Result<(Mat<f64>, f64), NumericError> {
    let noise =
        symmetric(&(covariance - product([a.as_ref(), covariance.as_ref(), a.transpose()])));
    let eigen = eigen(&noise, "the noise covariance of the states")?;
    let floor = NOISE_FLOOR * trace(covariance) / a.nrows() as f64;
    Ok((eigen.map(|value| value.max(floor)), eigen.least()))
}
