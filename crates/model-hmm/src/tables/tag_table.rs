//! The tags of a fitted model.

use latens_store::{FlatArray, StringTable};

/// The names of tags and their emission probabilities.
#[derive(Clone, Debug)]
pub(crate) struct TagTable {
    pub(crate) names: Vec<String>,
    /// g: Z per tag.
    pub(crate) emission: FlatArray<f32>,
    /// Words whose training count is not in the vocabulary, and these counts.
    pub(crate) rare_words: StringTable,
    pub(crate) rare_counts: Vec<u64>,
}

impl TagTable {
    /// The number of tags.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }
}
