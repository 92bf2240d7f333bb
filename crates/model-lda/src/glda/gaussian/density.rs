//! Topic densities in a form that is fast to evaluate for many vectors.

use super::cholesky;
use super::prior::{Prior, Scale};
use super::topic::Topic;
use latens_math::Rng;

/// Number of matrix rows processed at once.
pub(crate) const GROUP: usize = 4;

/// The density of one topic at x, a function of |W (x − m)|².
pub(crate) struct Density {
    pub(crate) shape: Shape,
    pub(crate) form: Form,
}

/// W and m in single precision, relative to the prior mean.
pub(crate) enum Shape {
    /// A lower triangle in groups of four rows, each stored column by column; and W m, padded.
    Triangle { groups: Vec<f32>, offset: Vec<f32> },
    /// The squared diagonal, and m.
    Diagonal { squares: Vec<f32>, mean: Vec<f32> },
}

/// Maps the squared norm q to the log density.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    /// ln = norm − half ln(1 + factor q).
    Student { norm: f32, half: f32, factor: f32 },
    /// ln = norm − half Σⱼ ln(1 + factor qⱼ), with the qⱼ of the coordinates.
    StudentProduct { norm: f32, half: f32, factor: f32 },
    /// ln = norm − q / 2.
    Normal { norm: f32 },
}

/// A sampled mean and covariance: x ~ N(m, (WᵀW)⁻¹).
pub(crate) struct Gaussian {
    /// W: a column-major lower triangle, or a diagonal.
    pub(crate) whitener: Whitener,
    pub(crate) mean: Vec<f64>,
}

/// Maps deviations from the mean to independent standard normal variables.
pub(crate) enum Whitener {
    Triangle(Vec<f64>),
    Diagonal(Vec<f64>),
}

impl Density {
    /// The predictive density of a topic.
    pub(crate) fn predictive(topic: &Topic, prior: &Prior) -> Density {
        let (norm, half, factor) = topic.predictive(prior);
        let (norm, half, factor) = (norm as f32, half as f32, factor as f32);
        let mean = relative(&topic.mean, prior);
        match &topic.scale {
            Scale::Full(l) => {
                let shape = Shape::triangle(&cholesky::inverse(l, prior.dim()), &mean);
                Density { shape, form: Form::Student { norm, half, factor } }
            }
            Scale::Diagonal(psi) => {
                let shape = Shape::diagonal(psi.iter().map(|psi| 1.0 / psi), &mean);
                Density { shape, form: Form::StudentProduct { norm, half, factor } }
            }
            Scale::Spherical(psi) => {
                let shape = Shape::diagonal(mean.iter().map(|_| 1.0 / psi), &mean);
                Density { shape, form: Form::Student { norm, half, factor } }
            }
        }
    }

    /// The density of a Gaussian.
    pub(crate) fn normal(gaussian: &Gaussian, prior: &Prior) -> Density {
        let dim = prior.dim();
        let mean = relative(&gaussian.mean, prior);
        let (shape, log_det) = match &gaussian.whitener {
            Whitener::Triangle(w) => (Shape::triangle(w, &mean), cholesky::half_log_det(w, dim)),
            Whitener::Diagonal(w) => {
                let log_det = w.iter().map(|w| w.ln()).sum();
                (Shape::diagonal(w.iter().map(|w| w * w), &mean), log_det)
            }
        };
        let norm = log_det - 0.5 * dim as f64 * std::f64::consts::TAU.ln();
        Density { shape, form: Form::Normal { norm: norm as f32 } }
    }
}

/// Subtracts the prior mean, so that single precision suffices.
fn relative(mean: &[f64], prior: &Prior) -> Vec<f64> {
    mean.iter().zip(&prior.mean).map(|(a, b)| a - b).collect()
}

impl Shape {
    fn triangle(w: &[f64], mean: &[f64]) -> Shape {
        let dim = mean.len();
        let mut offset = vec![0.0; dim];
        for (j, m) in mean.iter().enumerate() {
            let column = &w[j * dim + j..(j + 1) * dim];
            offset[j..].iter_mut().zip(column).for_each(|(sum, w)| *sum += w * m);
        }
        let mut groups = Vec::with_capacity(dim * (dim + 2 * GROUP) / 2);
        for first in (0..dim).step_by(GROUP) {
            for column in 0..(first + GROUP).min(dim) {
                let value = |row: usize| {
                    if row < dim && column <= row { w[column * dim + row] as f32 } else { 0.0 }
                };
                groups.extend((first..first + GROUP).map(value));
            }
        }
        let mut offset: Vec<f32> = offset.into_iter().map(|x| x as f32).collect();
        offset.resize(dim.next_multiple_of(GROUP), 0.0);
        Shape::Triangle { groups, offset }
    }

    fn diagonal(squares: impl Iterator<Item = f64>, mean: &[f64]) -> Shape {
        Shape::Diagonal {
            squares: squares.map(|x| x as f32).collect(),
            mean: mean.iter().map(|&x| x as f32).collect(),
        }
    }
}

impl Gaussian {
    /// Samples mean and covariance from the posterior of a topic.
    ///
    /// Σ⁻¹ follows a Wishart distribution. With Ψ = L Lᵀ it is WᵀW for W = Uᵀ L⁻¹, where U is upper triangular with
    /// independent entries: U_jj² ~ χ²(ν − M + 1 + j), standard normal above the diagonal (Bartlett's decomposition,
    /// starting from the last row). Both factors of W are lower triangular, and so is W.
    pub(crate) fn draw(topic: &Topic, prior: &Prior, rng: &mut Rng) -> Gaussian {
        let (dim, nu) = (prior.dim(), topic.nu(prior));
        let chi = |nu: f64, rng: &mut Rng| (2.0 * rng.gamma(nu / 2.0)).sqrt();
        let whitener = match &topic.scale {
            Scale::Full(l) => {
                let mut u = vec![0.0; dim * dim];
                for column in 0..dim {
                    for row in 0..column {
                        u[column * dim + row] = rng.normal();
                    }
                    u[column * dim + column] = chi(nu - (dim - 1 - column) as f64, rng);
                }
                Whitener::Triangle(product(&u, &cholesky::inverse(l, dim), dim))
            }
            Scale::Diagonal(psi) => {
                Whitener::Diagonal(psi.iter().map(|psi| chi(nu, rng) / psi.sqrt()).collect())
            }
            Scale::Spherical(psi) => Whitener::Diagonal(vec![chi(nu, rng) / psi.sqrt(); dim]),
        };
        let mut gaussian = Gaussian { whitener, mean: vec![0.0; dim] };
        let step = gaussian.deviation(rng);
        let root = topic.kappa(prior).sqrt();
        gaussian.mean = topic.mean.iter().zip(step).map(|(m, d)| m + d / root).collect();
        gaussian
    }

    /// W⁻¹ e for standard normal e: a random deviation from the mean.
    pub(crate) fn deviation(&self, rng: &mut Rng) -> Vec<f64> {
        let mut e: Vec<f64> = self.mean.iter().map(|_| rng.normal()).collect();
        match &self.whitener {
            Whitener::Triangle(w) => {
                cholesky::squared_length(w, &mut e);
            }
            Whitener::Diagonal(w) => e.iter_mut().zip(w).for_each(|(e, w)| *e /= w),
        }
        e
    }
}

/// UᵀB for upper triangular U and lower triangular B, column-major.
fn product(u: &[f64], b: &[f64], dim: usize) -> Vec<f64> {
    let mut out = vec![0.0; dim * dim];
    for j in 0..dim {
        let of_b = &b[j * dim..(j + 1) * dim];
        for i in j..dim {
            let of_u = &u[i * dim..(i + 1) * dim];
            out[j * dim + i] = (j..=i).map(|k| of_u[k] * of_b[k]).sum();
        }
    }
    out
}
