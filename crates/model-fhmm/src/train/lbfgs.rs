//! M-step of the emission scores by L-BFGS, as in Nepal and Yates (2013).

use crate::distribution::Distribution;
use crate::emission::partition::PartitionTable;
use crate::train::normalizer::Normalizer;
use crate::train::score_update::{WordCounts, objective};
use latens_math::Real;
use latens_math::lbfgs::{Lbfgs, LbfgsParams, Outcome};

/// Limits of the search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search {
    /// Maximum number of iterations.
    pub(crate) iterations: usize,
    /// τ of the proximal term |x − x₀|² / (2 τ); infinity disables it. It is needed where the normalizer is estimated
    /// from one batch and the counts from many: they disagree, and the unregularized maximum is useless.
    pub(crate) tau: f64,
}

/// Maximizes F(θ).
///
/// The variable is x = θ √(count of the word / K), as a preconditioner: second derivatives of F by θ scale with the
/// word counts, those by x do not.
pub(crate) fn maximize<T: Real>(
    distribution: &mut Distribution<T>,
    table: &mut PartitionTable<T>,
    counts: &WordCounts<'_>,
    normalizer: &Normalizer<'_, T>,
    search: Search,
) {
    let shape = distribution.shape;
    let scale = |word| (counts.total(word).max(1e-3) / shape.n_states as f64).sqrt();
    let scales: Vec<f64> = (0..shape.n_words).map(scale).collect();
    let scale_of = |at: usize| scales[at / shape.row()];
    let start: Vec<f64> =
        distribution.theta.iter().enumerate().map(|(at, t)| t.wide() * scale_of(at)).collect();
    let mut function = |x: &[f64], gradient: &mut [f64]| -> f64 {
        for (at, (theta, x)) in distribution.theta.iter_mut().zip(x).enumerate() {
            *theta = Distribution::clamp(T::of(x / scale_of(at)));
        }
        let (value, by_theta) = objective(distribution, table, counts, normalizer);
        let mut distance = 0.0;
        for (at, (gradient, by_theta)) in gradient.iter_mut().zip(by_theta).enumerate() {
            let step = x[at] - start[at];
            distance += step * step;
            *gradient = step / search.tau - by_theta / scale_of(at);
        }
        distance / (2.0 * search.tau) - value
    };
    let params = LbfgsParams { memory: 10, ..LbfgsParams::default() };
    let mut lbfgs = Lbfgs::start(params, start.clone(), &mut function);
    for _ in 0..search.iterations {
        if lbfgs.step(&mut function) != Outcome::Improved {
            break;
        }
    }
    let mut gradient = vec![0.0; start.len()];
    function(&lbfgs.into_x(), &mut gradient);
}
