//! Sampling algorithms, one per file. Each samples the topics of all tokens once per sweep.
//!
//! Every document has its own random stream in every sweep. Results therefore do not depend on the number of threads, and
//! samplers with the same conditional distributions give the same topics. Samplers keep no state between sweeps except
//! the topics of tokens.

mod alias;
mod collapsed;
mod exact;
mod mh;
mod naive;
mod parallel;
mod shards;
mod statistics;
mod streams;

pub(crate) use collapsed::Collapsed;
pub(crate) use mh::{Proposals, sample_document};
pub(crate) use statistics::Sweep;
pub(crate) use streams::document_rng;

use super::params::Sampler;
use super::problem::{Problem, State};
use streams::sweep_seed;

/// Samples every token once. `sampler` is not [`Sampler::Auto`].
pub(crate) fn sweep(
    sampler: Sampler,
    problem: &Problem,
    state: &mut State,
    n_shards: usize,
    (seed, iteration): (u64, u64),
) -> Sweep {
    let seed = sweep_seed(seed, iteration);
    match sampler {
        Sampler::Naive => naive::sweep(problem, state, seed),
        Sampler::Cholesky => exact::sweep(problem, state, seed, exact::Moving::Always),
        Sampler::Exact => exact::sweep(problem, state, seed, exact::Moving::Changed),
        Sampler::Alias => alias::sweep(problem, state, n_shards, seed),
        Sampler::Mh => mh::sweep(problem, state, n_shards, seed),
        Sampler::Parallel => parallel::sweep(problem, state, seed),
        Sampler::Auto => unreachable!("the caller has chosen a sampler"),
    }
}
