//! The M-step for the scores of words by L-BFGS, as the paper has it.

use crate::train::score_update::{WordCounts, objective};
use crate::train::normalizer::Normaliser;
use crate::distribution::Parameters;
use crate::emission::partition::Table;
use latens_math::Real;
use latens_math::lbfgs::{Lbfgs, LbfgsParams, Outcome};

/// How far a search may go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search {
    pub(crate) iterations: usize,
    /// The distance from the first θ costs |x − x₀|² / (2 τ); nothing if it is infinite. Where the normaliser is that
    /// of a few tokens and the counts are those of many, the two disagree, and the maximum would be no good.
    pub(crate) tau: f64,
}

/// Maximises F(θ).
///
/// The search is for x = θ √(count of the word / K): second derivatives of F by θ span the range of word counts, by x
/// they do not.
pub(crate) fn maximize<T: Real>(
    parameters: &mut Parameters<T>,
    table: &mut Table<T>,
    counts: &WordCounts<'_>,
    normaliser: &Normaliser<'_, T>,
    search: Search,
) {
    let shape = parameters.shape;
    let scale = |word| (counts.total(word).max(1e-3) / shape.n_states as f64).sqrt();
    let scales: Vec<f64> = (0..shape.n_words).map(scale).collect();
    let scale_of = |at: usize| scales[at / shape.row()];
    let start: Vec<f64> =
        parameters.theta.iter().enumerate().map(|(at, t)| t.wide() * scale_of(at)).collect();
    let mut function = |x: &[f64], gradient: &mut [f64]| -> f64 {
        for (at, (theta, x)) in parameters.theta.iter_mut().zip(x).enumerate() {
            *theta = Parameters::clamp(T::of(x / scale_of(at)));
        }
        let (value, by_theta) = objective(parameters, table, counts, normaliser);
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
        if lbfgs.step(&mut function) != Outcome::Went {
            break;
        }
    }
    let mut gradient = vec![0.0; start.len()];
    function(&lbfgs.into_x(), &mut gradient);
}
