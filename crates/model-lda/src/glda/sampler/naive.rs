//! Collapsed Gibbs sampling by definition: factors the scale matrix of every topic for every token.

use super::super::problem::{Problem, State};
use super::statistics::Sweep;
use super::streams::document_rng;
use crate::glda::gaussian::prior::{Prior, Scale};
use crate::glda::gaussian::topic::Topic;
use latens_math::sample_log_index;

pub(super) fn sweep(problem: &Problem, state: &mut State, seed: u64) -> Sweep {
    let Problem { prior, vectors, documents, weight } = problem;
    let n_topics = state.alpha.len();
    let mut sums: Vec<Sums> = (0..n_topics).map(|_| Sums::new(prior)).collect();
    for (&t, &k) in documents.types.iter().zip(&state.topics) {
        sums[usize::from(k)].change(1.0, &vectors.get(t).collect::<Vec<_>>());
    }
    let mut sweep = Sweep::default();
    let mut scratch = vec![0.0; prior.dim()];
    for document in 0..documents.len() {
        let mut rng = document_rng(seed, document);
        let range = documents.range(document);
        for token in range.clone() {
            let (t, old) = (documents.types[token], usize::from(state.topics[token]));
            let x: Vec<f64> = vectors.get(t).collect();
            sums[old].change(-1.0, &x);
            let others = || range.clone().filter(|&other| other != token);
            let logs: Vec<f64> = (0..n_topics)
                .map(|k| {
                    let n = others().filter(|&i| usize::from(state.topics[i]) == k).count() as f64;
                    let topic = sums[k].topic(prior);
                    let density = topic.log_density(prior, &x, &mut scratch);
                    (n + state.alpha[k]).ln() + weight * density
                })
                .collect();
            let new = sample_log_index(&logs, &mut rng);
            sums[new].change(1.0, &x);
            sweep.n_changed += u64::from(new != old);
            state.counts.remove(t, old as u16);
            state.counts.add(t, new as u16);
            state.topics[token] = new as u16;
        }
    }
    sweep
}

/// Sums of the vectors of a topic and of their outer products around the prior mean.
struct Sums {
    n: f64,
    first: Vec<f64>,
    second: Vec<f64>,
    middle: Vec<f64>,
}

impl Sums {
    fn new(prior: &Prior) -> Sums {
        let dim = prior.dim();
        Sums {
            n: 0.0,
            first: vec![0.0; dim],
            second: vec![0.0; dim * dim],
            middle: prior.mean.clone(),
        }
    }

    /// Adds or removes a vector.
    fn change(&mut self, sign: f64, x: &[f64]) {
        let d: Vec<f64> = x.iter().zip(&self.middle).map(|(x, m)| x - m).collect();
        self.n += sign;
        for (j, &dj) in d.iter().enumerate() {
            self.first[j] += sign * dj;
            let column = &mut self.second[j * d.len()..(j + 1) * d.len()];
            column.iter_mut().zip(&d).for_each(|(s, di)| *s += sign * di * dj);
        }
    }

    /// The topic: with d̄ the mean deviation from μ₀ and δ = n d̄ / κ, Ψ = Ψ₀ + Σ d dᵀ − κ δ δᵀ.
    fn topic(&self, prior: &Prior) -> Topic {
        let dim = prior.dim();
        let kappa = prior.kappa + self.n;
        let step: Vec<f64> = self.first.iter().map(|d| d / kappa).collect();
        let entry = |i: usize, j: usize| self.second[j * dim + i] - kappa * step[i] * step[j];
        let mut scale = prior.scale.clone();
        match &mut scale {
            Scale::Full(psi) => {
                for j in 0..dim {
                    (j..dim).for_each(|i| psi[j * dim + i] += entry(i, j));
                }
            }
            Scale::Diagonal(psi) => (0..dim).for_each(|j| psi[j] += entry(j, j)),
            Scale::Spherical(psi) => *psi += (0..dim).map(|j| entry(j, j)).sum::<f64>(),
        }
        let mean = prior.mean.iter().zip(step).map(|(m, d)| m + d).collect();
        Topic::from_parts(prior, self.n.round() as u64, mean, scale)
    }
}
