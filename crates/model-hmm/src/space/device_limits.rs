//! What the kernels of the CUDA device do not support.

use crate::params::{HmmParams, WordEmbedding};
use crate::space::state_space::StateSpace;

/// The largest number of states per word that the kernels support.
const MAX_STATES_PER_WORD: usize = 5_824;

/// What a model has that cannot be trained on the device.
pub(crate) fn unsupported(params: &HmmParams, space: &StateSpace, n_tags: usize) -> Option<String> {
    if params.word_vectors == WordEmbedding::Chars {
        return Some("character-based word vectors".to_owned());
    }
    if n_tags > 0 {
        return Some("tags".to_owned());
    }
    too_many_states(space)
}

/// More states per word than the kernels support, if the model has them.
pub(crate) fn too_many_states(space: &StateSpace) -> Option<String> {
    let has_many = space.k > MAX_STATES_PER_WORD && space.n_clusters() > 1;
    has_many.then(|| format!("more than {MAX_STATES_PER_WORD} states per word"))
}
