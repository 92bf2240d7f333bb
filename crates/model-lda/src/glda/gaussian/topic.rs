//! The posterior of one topic: a normal-inverse-Wishart distribution given its vectors, and the predictive density of
//! another vector.
//!
//! With n vectors in the topic, κ = κ₀ + n and ν = ν₀ + s n. Adding or removing a vector updates the location μ and the
//! scale Ψ in O(M²). The predictive density is a multivariate t, which simplifies to:
//!
//! ```text
//! ln t(x)          = a(n)     − h − (ν + s)/2 Λ(κ/(κ + 1))
//! ln t(x | others) = a(n − 1) − h + (ν − s)/2 Λ(−κ/(κ − 1))     x is one of the n
//! ```
//!
//! | Covariance | s | h | Λ(c) |
//! |---|---|---|---|
//! | full | 1 | ½ ln det Ψ | ln(1 + c (x − μ)ᵀ Ψ⁻¹ (x − μ)) |
//! | diagonal | 1 | ½ Σⱼ ln ψⱼ | Σⱼ ln(1 + c (xⱼ − μⱼ)² / ψⱼ) |
//! | spherical | M | M/2 ln ψ | ln(1 + c \|x − μ\|² / ψ) |
//!
//! The second line needs no update: it computes the full conditional while the token remains in its topic.

use super::cholesky;
use super::prior::{Prior, Scale};
use super::vectors::TypeVectors;
use latens_math::linalg::{Accum, MatMut, MatRef, matmul_lower};

/// A removal that leaves less than this fraction of the scale in some direction requires recomputation from scratch.
const SMALLEST_REST: f64 = 1e-10;
/// Number of vectors added to a scale at once.
const ROWS: usize = 256;

/// The posterior of one topic.
#[derive(Clone, Debug)]
pub(crate) struct Topic {
    n: u64,
    /// μ.
    pub(crate) mean: Vec<f64>,
    /// Ψ, or its Cholesky factor for a full matrix.
    pub(crate) scale: Scale,
    /// h.
    pub(crate) half_log_det: f64,
    /// a(n − 1) and a(n).
    log_norms: [f64; 2],
}

impl Topic {
    /// Computes the topic of these types with their counts from scratch, centered at the new location.
    pub(crate) fn new(prior: &Prior, members: &[(u32, u32)], vectors: &TypeVectors) -> Topic {
        let n: u64 = members.iter().map(|&(_, n)| u64::from(n)).sum();
        let kappa = prior.kappa + n as f64;
        let mut mean: Vec<f64> = prior.mean.iter().map(|&m| prior.kappa * m).collect();
        for &(token_type, n) in members {
            let vector = vectors.get(token_type);
            mean.iter_mut().zip(vector).for_each(|(m, x)| *m += f64::from(n) * x);
        }
        mean.iter_mut().for_each(|m| *m /= kappa);
        let scale = scatter(prior, &mean, members, vectors);
        Topic::from_parts(prior, n, mean, scale)
    }

    /// Creates a topic of `n` vectors with this location and scale, of which only the lower triangle is used.
    pub(crate) fn from_parts(prior: &Prior, n: u64, mean: Vec<f64>, scale: Scale) -> Topic {
        let mut topic = Topic { n, mean, scale, half_log_det: 0.0, log_norms: [0.0; 2] };
        if let Scale::Full(psi) = &mut topic.scale {
            let is_positive = cholesky::factorize(psi, prior.dim());
            assert!(is_positive, "a positive definite prior plus squares is positive definite");
        }
        topic.settle(prior);
        topic.log_norms[0] = if n > 0 { prior.log_norm(n - 1) } else { f64::NAN };
        topic
    }

    /// Number of vectors.
    pub(crate) fn n(&self) -> u64 {
        self.n
    }

    pub(crate) fn kappa(&self, prior: &Prior) -> f64 {
        prior.kappa + self.n as f64
    }

    pub(crate) fn nu(&self, prior: &Prior) -> f64 {
        prior.nu + prior.step() * self.n as f64
    }

    /// Adds a vector. `scratch` has the same length.
    #[inline(always)]
    pub(crate) fn add(&mut self, prior: &Prior, x: &[f64], scratch: &mut [f64]) {
        let kappa = self.kappa(prior);
        subtract(x, &self.mean, scratch);
        self.mean.iter_mut().zip(&*scratch).for_each(|(m, &d)| *m += d / (kappa + 1.0));
        let share = kappa / (kappa + 1.0);
        match &mut self.scale {
            Scale::Full(factor) => {
                scratch.iter_mut().for_each(|d| *d *= share.sqrt());
                cholesky::update(factor, scratch);
            }
            Scale::Diagonal(psi) => {
                psi.iter_mut().zip(&*scratch).for_each(|(psi, d)| *psi += share * d * d);
            }
            Scale::Spherical(psi) => *psi += share * squares(scratch),
        }
        self.n += 1;
        self.log_norms[0] = self.log_norms[1];
        self.settle(prior);
    }

    /// Removes one of its vectors. `scratch` has the same length. Returns `false` if that failed for lack of precision; the
    /// topic must then be recomputed from scratch.
    #[inline(always)]
    #[must_use]
    pub(crate) fn remove(&mut self, prior: &Prior, x: &[f64], scratch: &mut [f64]) -> bool {
        assert!(self.n > 0, "a topic without vectors gives none up");
        let kappa = self.kappa(prior);
        let share = kappa / (kappa - 1.0);
        subtract(x, &self.mean, scratch);
        if let Scale::Full(factor) = &self.scale
            && 1.0 - share * cholesky::squared_length(factor, scratch) < SMALLEST_REST
        {
            return false;
        }
        subtract(x, &self.mean, scratch);
        self.mean.iter_mut().zip(&*scratch).for_each(|(m, &d)| *m -= d / (kappa - 1.0));
        let is_done = match &mut self.scale {
            Scale::Full(factor) => {
                scratch.iter_mut().for_each(|d| *d *= share.sqrt());
                cholesky::downdate(factor, scratch)
            }
            Scale::Diagonal(psi) => {
                // After a failure the rest does not matter, because the topic is recomputed.
                psi.iter_mut().zip(&*scratch).all(|(psi, d)| shrink(psi, share * d * d))
            }
            Scale::Spherical(psi) => shrink(psi, share * squares(scratch)),
        };
        self.n -= 1;
        self.log_norms[1] = self.log_norms[0];
        self.log_norms[0] = if self.n > 0 { prior.log_norm(self.n - 1) } else { f64::NAN };
        if is_done {
            self.half_log_det = self.scale.half_log_det(prior.dim());
        }
        is_done
    }

    fn settle(&mut self, prior: &Prior) {
        self.log_norms[1] = prior.log_norm(self.n);
        self.half_log_det = self.scale.half_log_det(prior.dim());
    }

    /// ln t(x), the predictive log density of another vector.
    #[inline(always)]
    pub(crate) fn log_density(&self, prior: &Prior, x: &[f64], scratch: &mut [f64]) -> f64 {
        let kappa = self.kappa(prior);
        let ratio = self.log_ratio(kappa / (kappa + 1.0), x, scratch);
        let half = (self.nu(prior) + prior.step()) / 2.0;
        self.log_norms[1] - self.half_log_det - half * ratio
    }

    /// The log density of one of its vectors given the others.
    #[inline(always)]
    pub(crate) fn log_density_without(&self, prior: &Prior, x: &[f64], scratch: &mut [f64]) -> f64 {
        let kappa = self.kappa(prior);
        let ratio = self.log_ratio(-kappa / (kappa - 1.0), x, scratch);
        let half = (self.nu(prior) - prior.step()) / 2.0;
        self.log_norms[0] - self.half_log_det + half * ratio
    }

    /// Λ(c).
    #[inline(always)]
    fn log_ratio(&self, c: f64, x: &[f64], scratch: &mut [f64]) -> f64 {
        subtract(x, &self.mean, scratch);
        // A vector may account for all scatter in some direction. Rounding must not make the rest negative.
        let log = |z: f64| z.max(SMALLEST_REST - 1.0).ln_1p();
        match &self.scale {
            Scale::Full(factor) => log(c * cholesky::squared_length(factor, scratch)),
            Scale::Diagonal(psi) => {
                psi.iter().zip(&*scratch).map(|(psi, d)| log(c * d * d / psi)).sum()
            }
            Scale::Spherical(psi) => log(c * squares(scratch) / psi),
        }
    }

    /// The terms a(n) − h, (ν + s)/2 and κ/(κ + 1) of the predictive density.
    pub(crate) fn predictive(&self, prior: &Prior) -> (f64, f64, f64) {
        let kappa = self.kappa(prior);
        let half = (self.nu(prior) + prior.step()) / 2.0;
        (self.log_norms[1] - self.half_log_det, half, kappa / (kappa + 1.0))
    }

    /// ln Z, the joint log density of all its vectors with μ and Σ integrated out.
    pub(crate) fn log_marginal(&self, prior: &Prior) -> f64 {
        let (n, dim) = (self.n as f64, prior.dim() as f64);
        let (nu, kappa) = (self.nu(prior), self.kappa(prior));
        let pi = std::f64::consts::PI.ln();
        // ν/2 times the log determinant, or the log of the shared variance for a spherical scale.
        let share = |h: f64| if let Scale::Spherical(_) = self.scale { h / dim } else { h };
        -n * dim / 2.0 * pi + prior.log_gammas(nu) - prior.log_gammas(prior.nu)
            + prior.nu * share(prior.half_log_det)
            - nu * share(self.half_log_det)
            + dim / 2.0 * (prior.kappa / kappa).ln()
    }
}

/// Ψ₀ + κ₀ (μ₀ − μ)(μ₀ − μ)ᵀ + Σ n (x − μ)(x − μ)ᵀ; for a full matrix, only the lower triangle.
fn scatter(prior: &Prior, mean: &[f64], members: &[(u32, u32)], vectors: &TypeVectors) -> Scale {
    let mut scale = prior.scale.clone();
    let to_prior: Vec<f64> = prior.mean.iter().zip(mean).map(|(a, b)| a - b).collect();
    let own = (prior.kappa, &to_prior[..]);
    match &mut scale {
        Scale::Full(psi) => {
            let mut rows: Vec<f64> = own.1.iter().map(|d| d * own.0.sqrt()).collect();
            for part in members.chunks(ROWS) {
                for &(token_type, n) in part {
                    let root = f64::from(n).sqrt();
                    let row = vectors.get(token_type).zip(mean).map(|(x, m)| root * (x - m));
                    rows.extend(row);
                }
                add_squares(psi, &rows, mean.len());
                rows.clear();
            }
            add_squares(psi, &rows, mean.len());
        }
        Scale::Diagonal(psi) => {
            psi.iter_mut().zip(own.1).for_each(|(psi, d)| *psi += own.0 * d * d);
            for &(token_type, n) in members {
                let row = vectors.get(token_type).zip(mean).map(|(x, m)| x - m);
                psi.iter_mut().zip(row).for_each(|(psi, d)| *psi += f64::from(n) * d * d);
            }
        }
        Scale::Spherical(psi) => {
            *psi += own.0 * squares(own.1);
            for &(token_type, n) in members {
                let row = vectors.get(token_type).zip(mean).map(|(x, m)| (x - m) * (x - m));
                *psi += f64::from(n) * row.sum::<f64>();
            }
        }
    }
    scale
}

/// Adds the outer products of rows, Σ r rᵀ, to the lower triangle of a matrix.
fn add_squares(psi: &mut [f64], rows: &[f64], dim: usize) {
    if rows.is_empty() {
        return;
    }
    let columns = MatRef::from_column_major_slice(rows, dim, rows.len() / dim);
    let psi = MatMut::from_column_major_slice_mut(psi, dim, dim);
    matmul_lower(psi, Accum::Add, columns, columns.transpose());
}

#[inline(always)]
fn subtract(x: &[f64], mean: &[f64], out: &mut [f64]) {
    out.iter_mut().zip(x).zip(mean).for_each(|((d, x), m)| *d = x - m);
}

#[inline(always)]
fn squares(d: &[f64]) -> f64 {
    d.iter().map(|d| d * d).sum()
}

/// Subtracts from a scale. Returns `false` if too little is left.
fn shrink(psi: &mut f64, amount: f64) -> bool {
    let rest = *psi - amount;
    let is_enough = rest > SMALLEST_REST * *psi;
    *psi = rest;
    is_enough
}
