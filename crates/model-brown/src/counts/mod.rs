//! Bigram counts of words and of clusters, and the entropy terms computed from them.

pub(crate) mod bigrams;
pub(crate) mod cluster_counts;
pub(crate) mod entropy;
