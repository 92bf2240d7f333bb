//! The state of the LDA samplers.

use super::prior::Prior;
use super::shards::{self, Shard, n_shards};
use super::table::{Table, padded};
use crate::counts::TypeCounts;
use crate::documents::TypedDocuments;
use std::ops::Range;

/// The topics of all tokens and their counts.
pub(crate) struct LdaState {
    pub(crate) topics: Vec<u16>,
    pub(crate) alpha: Vec<f64>,
    n_types: usize,
    /// The counts: one table per thread, all equal between sweeps.
    tables: Vec<Table>,
    /// The types whose counts each table adds up at the end of a sweep.
    parts: Vec<Range<u32>>,
    shards: Vec<Range<usize>>,
}

impl LdaState {
    pub(crate) fn new(
        documents: &TypedDocuments,
        topics: Vec<u16>,
        n_types: usize,
        alpha: Vec<f64>,
    ) -> LdaState {
        let table = Table::new(documents, &topics, n_types, padded(alpha.len()));
        let tables = vec![table; n_tables(documents.n_tokens())];
        let parts = shards::parts(&documents.type_counts(n_types), tables.len());
        LdaState { topics, alpha, n_types, tables, parts, shards: shards::shards(documents) }
    }

    /// Sets the number of types V in V β, if not all rows are types.
    pub(crate) fn set_n_types(&mut self, n_types: usize) {
        self.n_types = n_types;
    }

    /// Samples in these shards.
    #[cfg(test)]
    pub(crate) fn set_shards(&mut self, shards: Vec<Range<usize>>) {
        self.shards = shards;
    }

    /// Counts of each type in each topic.
    pub(crate) fn counts(&self) -> TypeCounts {
        let n_topics = self.alpha.len();
        TypeCounts::from_values(n_topics, self.tables[0].counts(n_topics))
    }

    /// Samples every token once. Returns the number of tokens that changed their topic.
    pub(super) fn sweep(
        &mut self,
        documents: &TypedDocuments,
        beta: f64,
        seed: u64,
        sample: impl Fn(&mut Shard<'_>) + Sync,
    ) -> u64 {
        let LdaState { topics, alpha, n_types, tables, parts, shards } = self;
        let prior = Prior { alpha, beta, n_types: *n_types };
        shards::sweep(documents, shards, &prior, (tables, parts), topics, seed, sample)
    }
}

/// Number of copies of the counts: one per thread that can sample.
pub(crate) fn n_tables(n_tokens: usize) -> usize {
    rayon::current_num_threads().min(n_shards(n_tokens))
}
