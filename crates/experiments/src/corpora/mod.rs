//! The corpora of the experiments.

pub(crate) mod penn_treebank;
pub(crate) mod topics;
