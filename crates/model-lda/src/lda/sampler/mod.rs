//! Collapsed Gibbs sampling of LDA: p(k) ∝ (n_dk + α_k) (n_wk + β) / (N_k + V β), with all counts excluding the token.

mod rows;
mod table;
mod prior;
mod shards;
mod state;
mod dense;
mod sparse;

pub(crate) use state::{LdaState, n_tables};
pub(super) use table::padded;

use super::params::LdaSampler;
use crate::documents::TypedDocuments;
use sparse::Occurrences;

/// Samples every token of a part of the documents once, with the counts of all of them.
///
/// `counts` has a row of topics for each type.
pub(crate) fn sweep_part(
    documents: &TypedDocuments,
    counts: &[u32],
    (alpha, beta, n_types): (&[f64], f64, usize),
    topics: &mut Vec<u16>,
    seed: u64,
) {
    let prior = prior::Prior { alpha, beta, n_types };
    let mut table = table::Table::from_counts(counts, alpha.len());
    let all = 0..documents.len();
    shards::sweep_one((documents, all), &prior, &mut table, topics, seed, dense::sample);
}

/// A sampler with its precomputed index of the documents.
pub(crate) enum Sampling {
    Dense,
    Sparse(Occurrences),
}

impl Sampling {
    /// `sampler` is not [`LdaSampler::Auto`].
    pub(crate) fn new(sampler: LdaSampler, documents: &TypedDocuments, n_rows: usize) -> Sampling {
        match sampler {
            LdaSampler::Sparse => Sampling::Sparse(Occurrences::new(documents, n_rows)),
            LdaSampler::Dense => Sampling::Dense,
            LdaSampler::Auto => unreachable!("the caller has chosen a sampler"),
        }
    }

    pub(crate) fn sampler(&self) -> LdaSampler {
        match self {
            Sampling::Dense => LdaSampler::Dense,
            Sampling::Sparse(_) => LdaSampler::Sparse,
        }
    }

    /// Samples every token once. Returns the number of tokens that changed their topic.
    pub(crate) fn sweep(
        &self,
        state: &mut LdaState,
        documents: &TypedDocuments,
        beta: f64,
        seed: u64,
    ) -> u64 {
        match self {
            Sampling::Dense => state.sweep(documents, beta, seed, dense::sample),
            Sampling::Sparse(occurrences) => {
                state.sweep(documents, beta, seed, |shard| sparse::sample(shard, occurrences))
            }
        }
    }
}
