//! What several commands read or write besides text and models: counts, mixtures and word vectors.

pub(crate) mod lag_counts;
pub(crate) mod mixtures;
pub(crate) mod pictures;
pub(crate) mod foreign_format;
pub(crate) mod foreign_vectors;
pub(crate) mod word_vectors;
