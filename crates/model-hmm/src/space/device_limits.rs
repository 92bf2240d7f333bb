//! What the kernels of the CUDA device do not support.

use crate::params::{HmmParams, WordEmbedding};
use crate::space::state_space::StateSpace;

/// The largest number of states per word that the kernels support.
const MAX_STATES_PER_WORD: usize = 5_824;

/// What a model has that the kernels do not support.
pub(crate) fn unsupported(params: &HmmParams, space: &StateSpace, n_tags: usize) -> Option<String> {
    let has_many = space.k > MAX_STATES_PER_WORD && space.n_clusters() > 1;
    let parts = [
        (params.word_vectors == WordEmbedding::Chars, "character-based word vectors".to_owned()),
        (n_tags > 0, "tags".to_owned()),
        (has_many, format!("more than {MAX_STATES_PER_WORD} states per word")),
    ];
    parts.into_iter().find_map(|(is_so, what)| is_so.then_some(what))
}
