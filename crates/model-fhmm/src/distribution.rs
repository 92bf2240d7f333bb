//! The learned distribution: start, transition and emission of every layer.

use crate::shape::Shape;
use latens_math::{Real, Rng};

/// Start and transition probabilities of each layer, and emission scores of words.
///
/// p(Y | s) = exp(b_Y + Σ_m θ[Y, m, s^m]) / Z(s).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Distribution<T> {
    pub(crate) shape: Shape,
    /// b, the base score of each word: words.
    pub(crate) base: Vec<T>,
    /// π: layers × states.
    pub(crate) start: Vec<T>,
    /// A: layers × states × states.
    pub(crate) transition: Vec<T>,
    /// θ: words × layers × states.
    pub(crate) theta: Vec<T>,
}

/// Bound on the absolute value of scores. Beyond it a word is practically certain or impossible in a state.
const LARGEST_SCORE: f64 = 30.0;
/// Bound on the absolute value of base scores, which are logarithms of relative frequencies.
const LARGEST_BASE: f64 = 100.0;
/// Bound on probabilities. Pseudo-counts keep those of a trained model far above it.
const SMALLEST: f64 = 1e-30;

impl<T: Real> Distribution<T> {
    /// Draws a random model. Scores are N(0, ½²), which breaks the symmetry of layers and avoids the saddle point of
    /// equal states. π is nearly uniform; rows of A are less so.
    pub(crate) fn random(shape: Shape, base: &[f64], rng: &mut Rng) -> Distribution<T> {
        let k = shape.n_states;
        let start = (0..shape.n_layers).flat_map(|_| dirichlet(k, 5, rng)).map(T::of).collect();
        let n_rows = shape.n_layers * k;
        let transition = (0..n_rows).flat_map(|_| dirichlet(k, 2, rng)).map(T::of).collect();
        let n_scores = shape.n_words * shape.row();
        let theta = (0..n_scores).map(|_| T::of(0.5 * rng.normal())).collect();
        let base = base.iter().map(|&b| T::of(b)).collect();
        Distribution { shape, base, start, transition, theta }
    }

    /// θ of a word: layers × states.
    pub(crate) fn scores(&self, word: usize) -> &[T] {
        let row = self.shape.row();
        &self.theta[word * row..(word + 1) * row]
    }

    /// Converts to another precision.
    pub(crate) fn cast<U: Real>(&self) -> Distribution<U> {
        let cast = |values: &[T]| values.iter().map(|x| U::of(x.wide())).collect();
        Distribution {
            shape: self.shape,
            base: cast(&self.base),
            start: cast(&self.start),
            transition: cast(&self.transition),
            theta: cast(&self.theta),
        }
    }

    /// What is wrong with these values, if anything. No training gives such values, and sums of them may overflow.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let sums_to_one =
            |row: &[T]| (row.iter().map(|p| p.wide()).sum::<f64>() - 1.0).abs() < 1e-2;
        let is_score = |score: &T| score.wide().abs() <= LARGEST_SCORE;
        let are_distributions = |values: &[T]| {
            values.iter().all(|p| (SMALLEST..=1.0).contains(&p.wide()))
                && values.chunks_exact(self.shape.n_states.max(1)).all(sums_to_one)
        };
        if !are_distributions(&self.start) {
            return Some("a row of `start` is not a distribution");
        }
        if !are_distributions(&self.transition) {
            return Some("a row of `transition` is not a distribution");
        }
        if !self.base.iter().all(|base| base.wide().abs() <= LARGEST_BASE) {
            return Some("`base` contains values above 100");
        }
        (!self.theta.iter().all(is_score)).then_some("`scores` contains values above 30")
    }

    /// Clamps a score to its allowed range.
    pub(crate) fn clamp(score: T) -> T {
        let largest = T::of(LARGEST_SCORE);
        if score > largest {
            largest
        } else if score < -largest {
            -largest
        } else {
            score
        }
    }
}

/// Draws from a symmetric Dirichlet distribution with an integer parameter. Gamma variates are sums of exponential
/// variates.
fn dirichlet(n: usize, parameter: usize, rng: &mut Rng) -> Vec<f64> {
    let mut gamma = || (0..parameter).map(|_| -(1.0 - rng.uniform()).ln()).sum::<f64>();
    let draws: Vec<f64> = (0..n).map(|_| gamma()).collect();
    let sum: f64 = draws.iter().sum();
    draws.iter().map(|draw| draw / sum).collect()
}
