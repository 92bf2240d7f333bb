//! How often each type is in each topic: all that topics are made of.

use crate::documents::TypedDocuments;

/// n_wk as a matrix with a row a type. Whole numbers, so that the order of changes does not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TypeCounts {
    n_topics: usize,
    values: Vec<u32>,
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

    /// Counts in the order of types.
    pub(crate) fn from_values(n_topics: usize, values: Vec<u32>) -> TypeCounts {
        TypeCounts { n_topics, values }
    }

    /// The counts of all tokens.
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

    pub(crate) fn n_types(&self) -> usize {
        self.values.len() / self.n_topics
    }

    /// How often a type is in each topic.
    pub(crate) fn row(&self, token_type: u32) -> &[u32] {
        &self.values[token_type as usize * self.n_topics..][..self.n_topics]
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &[u32]> {
        self.values.chunks_exact(self.n_topics)
    }

    /// Makes room for more types, none of which was seen.
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

    /// The types of each topic, with how often they are in it, in the order of types.
    pub(crate) fn members(&self) -> Vec<Vec<(u32, u32)>> {
        let mut members = vec![Vec::new(); self.n_topics];
        for (token_type, row) in self.rows().enumerate() {
            for (topic, &n) in row.iter().enumerate().filter(|&(_, &n)| n > 0) {
                members[topic].push((token_type as u32, n));
            }
        }
        members
    }

    /// How many tokens each topic has.
    pub(crate) fn totals(&self) -> Vec<u64> {
        let mut totals = vec![0; self.n_topics];
        for row in self.rows() {
            totals.iter_mut().zip(row).for_each(|(total, &n)| *total += u64::from(n));
        }
        totals
    }
}
