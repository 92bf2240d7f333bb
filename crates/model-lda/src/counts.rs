//! Counts of types in topics, the sufficient statistics of topics.

use crate::documents::TypedDocuments;

/// The counts n_wk as a matrix with one row per type. Integers, so that results do not depend on the order of changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TypeCounts {
    n_topics: usize,
    values: Vec<u32>,
}

/// The sum of the counts of a type.
pub(crate) fn row_total(row: &[u32]) -> u64 {
    row.iter().map(|&n| u64::from(n)).sum()
}

/// A token that changed its topic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) token_type: u32,
    pub(crate) from: u16,
    pub(crate) to: u16,
}

impl TypeCounts {
    pub(crate) fn new(n_types: usize, n_topics: usize) -> TypeCounts {
        TypeCounts { n_topics, values: vec![0; n_types * n_topics] }
    }

    /// Creates counts from a row-major matrix with one row per type.
    pub(crate) fn from_values(n_topics: usize, values: Vec<u32>) -> TypeCounts {
        TypeCounts { n_topics, values }
    }

    /// Counts all tokens.
    pub(crate) fn of(
        documents: &TypedDocuments,
        topics: &[u16],
        n_types: usize,
        n_topics: usize,
    ) -> TypeCounts {
        let mut counts = TypeCounts::new(n_types, n_topics);
        for (&token_type, &topic) in documents.types.iter().zip(topics) {
            counts.add(token_type, topic);
        }
        counts
    }

    /// All counts, one row per type.
    pub(crate) fn values(&self) -> &[u32] {
        &self.values
    }

    pub(crate) fn n_types(&self) -> usize {
        self.values.len() / self.n_topics
    }

    /// Counts of a type in each topic.
    pub(crate) fn row(&self, token_type: u32) -> &[u32] {
        &self.values[token_type as usize * self.n_topics..][..self.n_topics]
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &[u32]> {
        self.values.chunks_exact(self.n_topics)
    }

    /// Adds types with zero counts.
    pub(crate) fn grow(&mut self, n_types: usize) {
        self.values.resize(n_types * self.n_topics, 0);
    }

    pub(crate) fn add(&mut self, token_type: u32, topic: u16) {
        self.values[token_type as usize * self.n_topics + usize::from(topic)] += 1;
    }

    pub(crate) fn remove(&mut self, token_type: u32, topic: u16) {
        self.values[token_type as usize * self.n_topics + usize::from(topic)] -= 1;
    }

    pub(crate) fn apply(&mut self, change: Change) {
        self.remove(change.token_type, change.from);
        self.add(change.token_type, change.to);
    }

    /// The types of each topic with their counts, in the order of types.
    pub(crate) fn members(&self) -> Vec<Vec<(u32, u32)>> {
        let mut members = vec![Vec::new(); self.n_topics];
        for (token_type, row) in self.rows().enumerate() {
            for (topic, &n) in row.iter().enumerate().filter(|&(_, &n)| n > 0) {
                members[topic].push((token_type as u32, n));
            }
        }
        members
    }

    /// Number of tokens in each topic.
    pub(crate) fn totals(&self) -> Vec<u64> {
        let mut totals = vec![0; self.n_topics];
        for row in self.rows() {
            totals.iter_mut().zip(row).for_each(|(total, &n)| *total += u64::from(n));
        }
        totals
    }
}
