//! Tags of words, as a fitted model knows them.

use crate::train::tagged_text::TaggedText;
use latens_store::FlatArray;
use latens_store::StringTable;

/// The names of tags, and how likely each state emits each.
#[derive(Clone, Debug)]
pub(crate) struct Tags {
    pub(crate) names: Vec<String>,
    /// g: for each tag Z.
    pub(crate) emission: FlatArray<f32>,
    /// Words of which the vocabulary does not tell how often they were seen in training, and how often.
    pub(crate) rare_words: StringTable,
    pub(crate) rare_counts: Vec<u64>,
}

impl Tags {
    pub(crate) fn new(text: &TaggedText, emission: FlatArray<f32>) -> Tags {
        let rare_words = text.rare_words.iter().map(|(word, _)| word).collect();
        let rare_counts = text.rare_words.iter().map(|&(_, count)| count).collect();
        Tags { names: text.names.clone(), emission, rare_words, rare_counts }
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }
}
