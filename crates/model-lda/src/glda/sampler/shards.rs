//! Documents in parts, so that a table of proposals can be made of the others.
//!
//! A table that is made of the tokens it is used for depends on the state that it changes, and the chain then has
//! another limit than the posterior. A table made of all *other* shards stays as it is while a shard is sampled, so
//! that every step leaves the posterior as it is.

use super::super::problem::Problem;
use crate::counts::TypeCounts;
use crate::glda::gaussian::table::Table;
use latens_math::Rng;

/// The documents of each shard, drawn anew for each sweep: neighbours in a sorted corpus are alike.
pub(super) fn shards(n_documents: usize, n_shards: usize, seed: u64) -> Vec<Vec<usize>> {
    let mut shards = vec![Vec::new(); n_shards];
    // No document and no topic has this stream.
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
