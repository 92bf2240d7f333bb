//! Document shards, so that proposals for one shard can be computed from the others.
//!
//! If the proposals depended on the tokens being sampled, the posterior would not be the stationary distribution. A table
//! computed from all *other* shards is fixed while a shard is sampled, so that every step leaves the posterior invariant.

use super::super::problem::Problem;
use crate::counts::TypeCounts;
use crate::glda::gaussian::table::Table;
use latens_math::Rng;

/// Random shards of documents, different in each sweep, because neighbors in a sorted corpus are similar.
pub(super) fn shards(n_documents: usize, n_shards: usize, seed: u64) -> Vec<Vec<usize>> {
    let mut shards = vec![Vec::new(); n_shards];
    // A stream distinct from those of documents and topics.
    let mut rng = Rng::stream(seed.rotate_left(32), u64::MAX);
    for document in 0..n_documents {
        shards[(rng.uniform() * n_shards as f64) as usize].push(document);
    }
    shards.retain(|shard| !shard.is_empty());
    shards
}

/// The predictive densities of the types of some documents, given the topics of all other documents.
pub(super) fn table_without(
    problem: &Problem,
    topics: &[u16],
    counts: &TypeCounts,
    shard: &[usize],
) -> Table {
    let mut others = counts.clone();
    let mut is_used = vec![false; problem.vectors.len()];
    for &document in shard {
        for token in problem.documents.range(document) {
            let token_type = problem.documents.types[token];
            others.remove(token_type, topics[token]);
            is_used[token_type as usize] = true;
        }
    }
    let types: Vec<u32> = (0..).zip(is_used).filter(|&(_, used)| used).map(|(t, _)| t).collect();
    let densities = problem.densities(&problem.topics(&others));
    Table::new(&densities, &problem.vectors, &problem.prior.mean, &types, problem.weight)
}
