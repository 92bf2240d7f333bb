//! Multinomial logistic regression on dense features, to classify documents.

use latens_math::lbfgs::{Lbfgs, LbfgsParams, Outcome};
use latens_math::log_sum_exp;
use rayon::prelude::*;

/// Maximum number of L-BFGS steps.
const MAX_STEPS: usize = 500;
/// Number of examples per parallel task. Fixed, so that sums do not depend on the number of threads.
const CHUNK: usize = 256;

/// A multinomial logistic regression classifier: one weight vector and one intercept per label.
#[derive(Clone, Debug)]
pub struct LogisticRegression {
    n_features: usize,
    n_labels: usize,
    /// One row per label; the intercept is the last entry of the row.
    weights: Vec<f64>,
    /// Mean and standard deviation of each feature.
    scaling: Vec<(f64, f64)>,
}

impl LogisticRegression {
    /// Fits a classifier by minimizing mean(−ln p(label | features)) + `l2`/2 · Σ θ², intercepts excluded.
    ///
    /// `features` has one row of `n_features` values per label. Features are standardized first.
    ///
    /// # Panics
    /// If `labels` is empty or `features.len() != labels.len() * n_features`.
    pub fn fit(
        features: &[f32],
        labels: &[usize],
        n_features: usize,
        l2: f64,
    ) -> LogisticRegression {
        assert!(!labels.is_empty(), "`labels` must not be empty");
        assert_eq!(
            features.len(),
            labels.len() * n_features,
            "`features` must have one row per label"
        );
        let n_labels = labels.iter().max().map_or(1, |&label| label + 1);
        let scaling = scaling(features, n_features);
        let weights = vec![0.0; n_labels * (n_features + 1)];
        let mut model = LogisticRegression { n_features, n_labels, weights, scaling };
        let rows: Vec<f64> =
            features.chunks_exact(n_features).flat_map(|row| model.scaled(row)).collect();
        let mut function =
            |x: &[f64], gradient: &mut [f64]| model.value(x, gradient, &rows, labels, l2);
        let mut search = Lbfgs::start(LbfgsParams::default(), model.weights.clone(), &mut function);
        for _ in 0..MAX_STEPS {
            if !matches!(search.step(&mut function), Outcome::Improved) {
                break;
            }
        }
        model.weights = search.into_x();
        model
    }

    /// Returns the most likely label.
    ///
    /// # Panics
    /// If the number of features differs from that of training.
    pub fn predict(&self, features: &[f32]) -> usize {
        assert_eq!(features.len(), self.n_features, "`features` must be as many as in training");
        let row: Vec<f64> = self.scaled(features).collect();
        let scores = self.scores(&self.weights, &row);
        let best = |a: usize, b: usize| if scores[b] > scores[a] { b } else { a };
        (1..self.n_labels).fold(0, best)
    }

    /// Fraction of examples whose most likely label is the given one.
    pub fn accuracy(&self, features: &[f32], labels: &[usize]) -> f64 {
        let rows = features.chunks_exact(self.n_features).zip(labels);
        let n_correct = rows.filter(|&(row, &label)| self.predict(row) == label).count();
        n_correct as f64 / labels.len().max(1) as f64
    }

    fn scaled<'a>(&'a self, row: &'a [f32]) -> impl Iterator<Item = f64> + 'a {
        row.iter().zip(&self.scaling).map(|(&x, (mean, scale))| (f64::from(x) - mean) / scale)
    }

    fn scores(&self, weights: &[f64], row: &[f64]) -> Vec<f64> {
        let of_label = |weights: &[f64]| {
            let (intercept, weights) = weights.split_last().expect("every row has an intercept");
            intercept + weights.iter().zip(row).map(|(w, x)| w * x).sum::<f64>()
        };
        weights.chunks_exact(self.n_features + 1).map(of_label).collect()
    }

    /// Returns the objective at `x` and overwrites `gradient`.
    fn value(
        &self,
        x: &[f64],
        gradient: &mut [f64],
        rows: &[f64],
        labels: &[usize],
        l2: f64,
    ) -> f64 {
        let (n, n_features) = (labels.len() as f64, self.n_features);
        let parts = rows.par_chunks(CHUNK * n_features).zip(labels.par_chunks(CHUNK));
        let parts: Vec<(f64, Vec<f64>)> = parts
            .map(|(rows, labels)| {
                let (mut loss, mut sums) = (0.0, vec![0.0; x.len()]);
                for (row, &label) in rows.chunks_exact(n_features).zip(labels) {
                    let scores = self.scores(x, row);
                    let total = log_sum_exp(&scores);
                    loss += total - scores[label];
                    for (k, sums) in sums.chunks_exact_mut(n_features + 1).enumerate() {
                        let error = (scores[k] - total).exp() - f64::from(u8::from(k == label));
                        sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += error * x);
                        sums[n_features] += error;
                    }
                }
                (loss, sums)
            })
            .collect();
        gradient.fill(0.0);
        let mut value = 0.0;
        for (loss, sums) in parts {
            value += loss / n;
            gradient.iter_mut().zip(sums).for_each(|(g, sum)| *g += sum / n);
        }
        for (i, (g, &w)) in gradient.iter_mut().zip(x).enumerate() {
            // Intercepts are not penalized.
            if i % (n_features + 1) != n_features {
                value += 0.5 * l2 * w * w;
                *g += l2 * w;
            }
        }
        value
    }
}

/// Mean and standard deviation of each feature; the deviation of a constant feature is 1.
fn scaling(features: &[f32], n_features: usize) -> Vec<(f64, f64)> {
    let n = (features.len() / n_features.max(1)) as f64;
    let column = |j: usize| features[j..].iter().step_by(n_features).map(|&x| f64::from(x));
    let of_column = |j: usize| {
        let mean = column(j).sum::<f64>() / n;
        let variance = column(j).map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        (mean, if variance > 0.0 { variance.sqrt() } else { 1.0 })
    };
    (0..n_features).map(of_column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_math::Rng;

    fn clouds(n: usize) -> (Vec<f32>, Vec<usize>) {
        let mut rng = Rng::new(1);
        let labels: Vec<usize> = (0..n).map(|i| i % 3).collect();
        let center = |label: usize| [[0.0, 4.0], [4.0, 0.0], [-4.0, -4.0]][label];
        let row = |&label: &usize| center(label).map(|c| (c + rng.normal()) as f32);
        (labels.iter().flat_map(row).collect(), labels)
    }

    #[test]
    fn separate_clouds_are_classified() {
        let (features, labels) = clouds(300);
        let model = LogisticRegression::fit(&features, &labels, 2, 1e-3);
        assert!(model.accuracy(&features, &labels) > 0.97);
        assert_eq!(model.predict(&[5.0, 0.5]), 1);
    }

    #[test]
    fn the_gradient_agrees_with_finite_differences() {
        let (features, labels) = clouds(30);
        let model = LogisticRegression::fit(&features, &labels, 2, 0.1);
        let rows: Vec<f64> = features.chunks_exact(2).flat_map(|row| model.scaled(row)).collect();
        let mut rng = Rng::new(2);
        let x: Vec<f64> = (0..9).map(|_| rng.normal()).collect();
        let mut gradient = vec![0.0; 9];
        model.value(&x, &mut gradient, &rows, &labels, 0.1);
        for i in 0..9 {
            let at = |h: f64| {
                let mut x = x.clone();
                x[i] += h;
                model.value(&x, &mut [0.0; 9], &rows, &labels, 0.1)
            };
            let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
            assert!((slope - gradient[i]).abs() < 1e-8, "{i}: {slope} {}", gradient[i]);
        }
    }

    #[test]
    fn constant_features_give_the_most_frequent_label() {
        let model = LogisticRegression::fit(&[1.0; 5], &[2, 2, 0, 2, 1], 1, 1e-3);
        assert_eq!(model.predict(&[1.0]), 2);
    }
}
