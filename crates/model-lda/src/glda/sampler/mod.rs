//! One way a file to sample the topics of all tokens, once each.
//!
//! Every document draws from a random stream of its own in every sweep, so that no result depends on the number of
//! threads, and samplers that draw from the same probabilities give the same topics. A sampler keeps nothing between
//! sweeps: the topics of tokens are all there is to go on from.

mod alias;
mod collapsed;
mod exact;
mod mh;
mod naive;
mod parallel;
mod shards;

pub(crate) use collapsed::Collapsed;
pub(crate) use mh::{Proposals, sample_document};

use super::params::Sampler;
use super::problem::{Problem, State};
use latens_math::Rng;
use rand_streams::sweep_seed;

/// What happened in a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sweep {
    /// Tokens that changed their topic.
    pub(crate) n_changed: u64,
    /// Proposals of another topic that were made, where some are refused.
    pub(crate) n_proposed: u64,
    /// Those that were accepted.
    pub(crate) n_accepted: u64,
    /// Topics that had to be made again for want of precision.
    pub(crate) n_rebuilt: u64,
}

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
        Sampler::Auto => unreachable!("a sampler was chosen before"),
    }
}

mod rand_streams {
    use latens_math::Rng;

    /// The seed of one sweep.
    pub(super) fn sweep_seed(seed: u64, iteration: u64) -> u64 {
        let bits: [u64; 4] = Rng::stream(seed, iteration).into();
        bits[0] ^ bits[2].rotate_left(32)
    }
}

/// The random stream of a document in a sweep.
pub(crate) fn document_rng(sweep_seed: u64, document: usize) -> Rng {
    Rng::stream(sweep_seed, document as u64)
}

/// The random stream of a topic in a sweep, which no document has.
fn topic_rng(sweep_seed: u64, topic: usize) -> Rng {
    Rng::stream(!sweep_seed, topic as u64)
}
