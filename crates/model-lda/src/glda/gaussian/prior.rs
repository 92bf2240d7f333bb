//! The prior of topics.

use super::cholesky;
use super::vectors::TypeVectors;
use crate::glda::params::{Covariance, GldaParams, NU, Preset};
use latens_math::ln_gamma;
use latens_model::{ParamError, check_range, check_that};
use std::f64::consts::PI;

/// The normal-inverse-Wishart prior of a topic, or its analog for simpler covariances.
#[derive(Clone, Debug)]
pub(crate) struct Prior {
    /// κ₀, the weight of the mean in number of vectors.
    pub(crate) kappa: f64,
    /// ν₀, the degrees of freedom of the scale.
    pub(crate) nu: f64,
    /// μ₀.
    pub(crate) mean: Vec<f64>,
    /// Ψ₀, of which only the lower triangle is used.
    pub(crate) scale: Scale,
    /// h of Ψ₀; `topic.rs` defines it.
    pub(crate) half_log_det: f64,
}

/// The largest absolute component of a vector, and the smallest standard deviation of vectors that differ. Squares of
/// larger or smaller numbers would overflow or underflow in single precision.
const LARGEST: f32 = 1e8;
const SMALLEST_DEVIATION: f64 = 1e-8;

/// Checks that the squares of vectors neither overflow nor underflow.
fn check_vectors(vectors: &TypeVectors, variance: f64) -> Result<(), ParamError> {
    check_components(vectors.values())?;
    let deviation = variance.sqrt();
    let is_large = variance == 0.0 || deviation >= SMALLEST_DEVIATION;
    let must = "such that their standard deviation is at least 1e-8 (scale them up)";
    check_that(is_large, "vectors", must, format!("{deviation:e}"))
}

/// Checks that the squares of a vector do not overflow.
pub(crate) fn check_components(values: &[f32]) -> Result<(), ParamError> {
    let largest = values.iter().fold(0f32, |max, x| max.max(x.abs()));
    let must = "at most 1e8 in every component (scale them down)";
    check_that(largest <= LARGEST, "vectors", must, format!("{largest:e}"))
}

/// A scale matrix Ψ: a column-major lower triangle or factor, a diagonal, or a multiple of the identity.
#[derive(Clone, Debug)]
pub(crate) enum Scale {
    Full(Vec<f64>),
    Diagonal(Vec<f64>),
    Spherical(f64),
}

impl Scale {
    /// h. A full matrix must be factored.
    pub(crate) fn half_log_det(&self, dim: usize) -> f64 {
        match self {
            Scale::Full(factor) => cholesky::half_log_det(factor, dim),
            Scale::Diagonal(psi) => psi.iter().map(|psi| 0.5 * psi.ln()).sum(),
            Scale::Spherical(psi) => 0.5 * dim as f64 * psi.ln(),
        }
    }
}

impl Prior {
    /// # Panics
    /// If the scale is not positive definite.
    pub(crate) fn new(kappa: f64, nu: f64, mean: Vec<f64>, scale: Scale) -> Prior {
        let mut factor = scale.clone();
        if let Scale::Full(psi) = &mut factor {
            assert!(
                cholesky::factorize(psi, mean.len()),
                "the prior scale must be positive definite"
            );
        }
        let half_log_det = factor.half_log_det(mean.len());
        Prior { kappa, nu, mean, scale, half_log_det }
    }

    /// The prior given by the parameters for the vectors of these types.
    pub(crate) fn of(params: &GldaParams, vectors: &TypeVectors) -> Result<Prior, ParamError> {
        let (mean, variance) = vectors.moments();
        check_vectors(vectors, variance)?;
        let dim = mean.len();
        let default_nu = match (params.covariance, params.prior) {
            (Covariance::Full, Preset::Relative) => dim as f64 + 2.0,
            (Covariance::Full, Preset::Das2015) => dim as f64,
            (Covariance::Diagonal | Covariance::Spherical, _) => 3.0,
        };
        let nu = params.nu.unwrap_or(default_nu);
        if params.covariance == Covariance::Full {
            let must = format!("above {}, the number of dimensions minus 1", dim - 1);
            check_that(nu > dim as f64 - 1.0, "nu", must, nu)?;
        }
        check_range("nu", nu, NU)?;
        let psi = params.psi_scale
            * match params.prior {
                // Identical vectors still need a positive scale.
                Preset::Relative if variance > 0.0 => nu * variance,
                Preset::Relative => nu,
                Preset::Das2015 => 3.0 * dim as f64,
            };
        // A smaller prior would vanish in rounding, and covariances could become singular.
        let must = format!(
            "such that the prior is at least 1e-12 of the vectors' variance {variance:.3e}"
        );
        check_that(psi >= 1e-12 * variance, "psi_scale", must, params.psi_scale)?;
        let scale = match params.covariance {
            Covariance::Full => {
                let mut matrix = vec![0.0; dim * dim];
                (0..dim).for_each(|j| matrix[j * dim + j] = psi);
                Scale::Full(matrix)
            }
            Covariance::Diagonal => Scale::Diagonal(vec![psi; dim]),
            Covariance::Spherical => Scale::Spherical(psi),
        };
        Ok(Prior::new(params.kappa, nu, mean, scale))
    }

    pub(crate) fn dim(&self) -> usize {
        self.mean.len()
    }

    /// s, the increment of ν per vector.
    pub(crate) fn step(&self) -> f64 {
        match self.scale {
            Scale::Full(_) | Scale::Diagonal(_) => 1.0,
            Scale::Spherical(_) => self.dim() as f64,
        }
    }

    /// a(n), the part of the predictive density that depends only on the number of vectors.
    pub(crate) fn log_norm(&self, n: u64) -> f64 {
        let dim = self.dim() as f64;
        let (kappa, nu) = (self.kappa + n as f64, self.nu + self.step() * n as f64);
        let gammas = match self.scale {
            Scale::Full(_) => ln_gamma((nu + 1.0) / 2.0) - ln_gamma((nu + 1.0 - dim) / 2.0),
            Scale::Diagonal(_) => dim * (ln_gamma((nu + 1.0) / 2.0) - ln_gamma(nu / 2.0)),
            Scale::Spherical(_) => ln_gamma((nu + dim) / 2.0) - ln_gamma(nu / 2.0),
        };
        gammas + dim / 2.0 * ((kappa / (kappa + 1.0)).ln() - PI.ln())
    }

    /// The gamma functions of the marginal density: ln Γ_M(ν/2) for a full matrix, without its power of π, which
    /// cancels; M ln Γ(ν/2) for a diagonal matrix; ln Γ(ν/2) for a spherical one.
    pub(crate) fn log_gammas(&self, nu: f64) -> f64 {
        match self.scale {
            Scale::Full(_) => (0..self.dim()).map(|j| ln_gamma((nu - j as f64) / 2.0)).sum(),
            Scale::Diagonal(_) => self.dim() as f64 * ln_gamma(nu / 2.0),
            Scale::Spherical(_) => ln_gamma(nu / 2.0),
        }
    }
}
