//! Small models for tests.

use crate::distribution::Distribution;
use crate::emission::coupling::TableCoupling;
use crate::emission::partition::PartitionTable;
use crate::inference::mean_field::{Bound, MeanField, Start, chains};
use crate::shape::Shape;
use latens_math::Rng;

pub(crate) const BOUNDS: [Bound; 3] = [Bound::Jensen, Bound::Tilted, Bound::Exact];

/// The model of the golden numbers: M = 2, K = 3, V = 6, b = 0.
pub(crate) fn golden() -> Distribution<f64> {
    let shape = Shape { n_layers: 2, n_states: 3, n_words: 6 };
    let shares = |weights: Vec<f64>| {
        let sum: f64 = weights.iter().sum();
        weights.into_iter().map(move |weight| weight / sum)
    };
    let states = || (0..3).map(f64::from);
    let layers = || (0..2).map(f64::from);
    let start =
        layers().flat_map(|m| shares(states().map(|k| (m + 2.0 * k).cos().exp()).collect()));
    let row = |m: f64, j: f64| {
        shares(states().map(|k| (1.0 + m + 2.0 * j + 3.0 * k).sin().exp()).collect())
    };
    let transition = layers().flat_map(|m| states().flat_map(move |j| row(m, j)));
    let theta = (0..6).map(f64::from).flat_map(|y| {
        layers().flat_map(move |m| {
            states().map(move |k| 1.5 * (0.7 * y + 1.3 * m + 2.1 * k + 0.5 * y * k).sin())
        })
    });
    Distribution {
        shape,
        base: vec![0.0; 6],
        start: start.collect(),
        transition: transition.collect(),
        theta: theta.collect(),
    }
}

pub(crate) const SENTENCE: [u32; 5] = [0, 3, 1, 5, 2];

pub(crate) fn random(shape: Shape, deviation: f64, seed: u64) -> Distribution<f64> {
    let mut rng = Rng::new(seed);
    let base: Vec<f64> = (0..shape.n_words).map(|_| rng.normal() * 0.3).collect();
    let mut distribution = Distribution::random(shape, &base, &mut rng);
    distribution.theta.iter_mut().for_each(|theta| *theta *= 2.0 * deviation);
    distribution
}

/// Calls `use_it` with a mean field initialized at the prior.
pub(crate) fn with_mean_field<R>(
    distribution: &Distribution<f64>,
    bound: Bound,
    sentences: &[&[u32]],
    use_it: impl FnOnce(&mut MeanField<'_, f64, TableCoupling<'_, f64>>) -> R,
) -> R {
    let table = PartitionTable::of(distribution);
    let values = if bound == Bound::Exact { table.logarithms() } else { table.values.clone() };
    let coupling = TableCoupling::new(distribution.shape, &values);
    let chains = chains(distribution);
    use_it(&mut MeanField::new(distribution, &chains, coupling, bound, sentences, Start::Prior))
}

pub(crate) fn assert_near(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    }
}

/// `n` random words, and the posterior of their states.
pub(crate) fn random_posterior(shape: Shape, n: usize, rng: &mut Rng) -> (Vec<u32>, Vec<f64>) {
    let words = (0..n).map(|_| (rng.uniform() * shape.n_words as f64) as u32).collect();
    let mut gamma: Vec<f64> = (0..n * shape.row()).map(|_| rng.uniform().powi(3)).collect();
    for layer in gamma.chunks_exact_mut(shape.n_states) {
        let sum: f64 = layer.iter().sum();
        layer.iter_mut().for_each(|p| *p /= sum);
    }
    (words, gamma)
}
