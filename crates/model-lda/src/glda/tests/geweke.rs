//! Geweke's (2004) joint distribution test: samples of parameters, topics and vectors from the model must agree with a
//! chain that alternates between topics given vectors and vectors given topics.

use crate::documents::TypedDocuments;
use crate::glda::gaussian::density::Gaussian;
use crate::glda::gaussian::prior::{Prior, Scale};
use crate::glda::gaussian::topic::Topic;
use crate::glda::gaussian::vectors::TypeVectors;
use crate::glda::params::Sampler;
use crate::glda::problem::{Problem, State};
use crate::glda::sampler::sweep;
use latens_math::{Rng, sample_index};

const N_TOKENS: usize = 8;
const ALPHA: [f64; 2] = [0.7, 0.4];
const N_STATISTICS: usize = 6;

fn prior(nu: f64) -> Prior {
    Prior::new(0.5, nu, vec![0.2, -0.1], Scale::Full(vec![1.0, 0.3, 0.3, 0.8]))
}

/// Two documents in which every token has its own type.
fn problem(nu: f64, values: Vec<f32>) -> Problem {
    let documents = TypedDocuments::new([vec![0, 1, 2, 3], vec![4, 5, 6, 7]]);
    Problem { prior: prior(nu), vectors: TypeVectors::new(2, values), documents, weight: 1.0 }
}

/// Draws vectors from the Gaussians of their topics.
fn draw_vectors(gaussians: &[Gaussian], topics: &[u16], rng: &mut Rng) -> Vec<f32> {
    let draw = |&k: &u16| {
        let gaussian = &gaussians[usize::from(k)];
        let d = gaussian.deviation(rng);
        gaussian.mean.iter().zip(d).map(|(m, d)| (m + d) as f32).collect::<Vec<_>>()
    };
    topics.iter().flat_map(draw).collect()
}

/// Bounded statistics, because the vectors have heavy tails.
fn statistics(topics: &[u16], x: &[f32]) -> [f64; N_STATISTICS] {
    let x: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
    let n_0 = topics.iter().filter(|&&k| k == 0).count() as f64;
    [
        x[0].tanh(),
        (x[0] * x[0]).tanh(),
        (x[0] * x[1]).tanh(),
        ((x[0] - x[2]).powi(2) + (x[1] - x[3]).powi(2)).tanh(),
        f64::from(u8::from(topics[0] == topics[1])),
        n_0 * n_0,
    ]
}

fn forward(n: usize) -> Vec<[f64; N_STATISTICS]> {
    let mut rng = Rng::new(21);
    let prior = prior(4.0);
    let empty = Topic::new(&prior, &[], &TypeVectors::new(2, vec![]));
    let draw = |_| {
        let gaussians: Vec<Gaussian> =
            (0..2).map(|_| Gaussian::draw(&empty, &prior, &mut rng)).collect();
        let mut topics = Vec::new();
        for _ in 0..2 {
            let mut weights = ALPHA;
            for _ in 0..N_TOKENS / 2 {
                let k = sample_index(&weights, &mut rng);
                weights[k] += 1.0;
                topics.push(k as u16);
            }
        }
        statistics(&topics, &draw_vectors(&gaussians, &topics, &mut rng))
    };
    (0..n).map(draw).collect()
}

/// Runs the chain. The correct `nu` is 4.
fn chain(sampler: Sampler, nu: f64, n: usize) -> Vec<[f64; N_STATISTICS]> {
    let mut rng = Rng::new(22);
    let mut values = vec![0.0; 2 * N_TOKENS];
    values.iter_mut().for_each(|x| *x = rng.normal() as f32);
    let mut topics = vec![0; N_TOKENS];
    let step = |i: usize| {
        let problem = problem(nu, values.clone());
        let mut state = State::new(&problem.documents, topics.clone(), N_TOKENS, ALPHA.to_vec());
        sweep(sampler, &problem, &mut state, 2, (3, i as u64));
        let posteriors = problem.topics(&state.counts);
        let gaussians: Vec<Gaussian> =
            posteriors.iter().map(|t| Gaussian::draw(t, &problem.prior, &mut rng)).collect();
        values = draw_vectors(&gaussians, &state.topics, &mut rng);
        topics = state.topics;
        statistics(&topics, &values)
    };
    (0..n).map(step).collect()
}

/// The mean and its squared standard error, from 50 batch means.
fn mean(values: &[[f64; N_STATISTICS]], which: usize) -> (f64, f64) {
    let n_parts = 50;
    let parts = values.chunks_exact(values.len() / n_parts);
    let means: Vec<f64> =
        parts.map(|part| part.iter().map(|v| v[which]).sum::<f64>() / part.len() as f64).collect();
    let mean = means.iter().sum::<f64>() / n_parts as f64;
    let square = means.iter().map(|m| (m - mean).powi(2)).sum::<f64>();
    (mean, square / (n_parts * (n_parts - 1)) as f64)
}

fn scores(sampler: Sampler, nu: f64) -> [f64; N_STATISTICS] {
    let (forward, chain) = (forward(12_000), chain(sampler, nu, 12_000));
    std::array::from_fn(|which| {
        let ((a, va), (b, vb)) = (mean(&forward, which), mean(&chain, which));
        (a - b) / (va + vb).sqrt()
    })
}

#[test]
fn the_chain_agrees_with_the_model() {
    for sampler in [Sampler::Exact, Sampler::Mh, Sampler::Parallel] {
        let scores = scores(sampler, 4.0);
        assert!(scores.iter().all(|score| score.abs() < 4.0), "{sampler:?}: {scores:?}");
    }
}

#[test]
fn a_wrong_degree_of_freedom_is_detected() {
    let scores = scores(Sampler::Parallel, 5.0);
    assert!(scores.iter().any(|score| score.abs() > 8.0), "{scores:?}");
}
