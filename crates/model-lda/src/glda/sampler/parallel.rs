//! Sampling with explicit means and covariances. Given these, documents are independent, and all threads sample in
//! parallel from the exact conditionals.

use super::super::problem::{Problem, State};
use super::statistics::Sweep;
use super::streams::{document_rng, topic_rng};
use crate::draw::padded_alpha;
use crate::glda::gaussian::density::{Density, Gaussian};
use crate::glda::gaussian::table::Table;
use crate::glda::gaussian::topic::Topic;
use crate::sharing::sample_documents;
use rayon::prelude::*;

pub(super) fn sweep(problem: &Problem, state: &mut State, seed: u64) -> Sweep {
    let gaussians = draw_gaussians(problem, &problem.topics(&state.counts), seed);
    let table = table(problem, &gaussians);
    let alpha = padded_alpha(&state.alpha);
    let changes = sample_documents(
        &problem.documents,
        &mut state.topics,
        &alpha,
        &|token_type| table.row(token_type),
        &|document| document_rng(seed, problem.documents.number(document)),
    );
    let n_changed = changes.iter().map(|part| part.len() as u64).sum();
    for change in changes.into_iter().flatten() {
        state.counts.apply(change);
    }
    Sweep { n_changed, ..Sweep::default() }
}

/// Samples means and covariances from their posteriors.
pub(super) fn draw_gaussians(problem: &Problem, topics: &[Topic], seed: u64) -> Vec<Gaussian> {
    let topics = topics.par_iter().enumerate();
    topics
        .map(|(k, topic)| Gaussian::draw(topic, &problem.prior, &mut topic_rng(seed, k)))
        .collect()
}

/// Computes the densities of all types.
fn table(problem: &Problem, gaussians: &[Gaussian]) -> Table {
    let Problem { prior, vectors, weight, .. } = problem;
    let densities: Vec<Density> =
        gaussians.par_iter().map(|gaussian| Density::normal(gaussian, prior)).collect();
    let types: Vec<u32> = (0..vectors.len() as u32).collect();
    Table::new(&densities, vectors, &prior.mean, &types, *weight)
}
