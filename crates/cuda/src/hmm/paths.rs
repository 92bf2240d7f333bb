//! The most likely path of states of each sentence.

use super::recursion::{Sequences, THREADS};
use crate::device::{Array, CudaError, Device, at_least, grid, int, kernels};

impl Device {
    /// The most likely path (Viterbi): the state of each token, an index below k, and the scale of the token. `best` is
    /// scratch.
    ///
    /// The scale of a token is the weight of the best path up to it if that to the token before has weight 1. It is 0 if the
    /// path takes a probability that was raised to a lower bound; the true most likely path may be another one then. Of
    /// equally likely states, the first one is taken.
    pub fn best_paths(
        &self,
        (path, scales): (&mut Array<u32>, &mut Array<f32>),
        best: &mut Array<f32>,
        (local, start, blocks): (&Array<f32>, &Array<f32>, &Array<f32>),
        sequences: &Sequences<'_>,
        k: usize,
    ) -> Result<(), CudaError> {
        let Sequences { ints, offsets, clusters, block_of_pair, .. } = sequences;
        let (n_sentences, n_tokens) = (sequences.n_sentences(), sequences.n_tokens());
        sequences.check_tables((local, start, blocks), k);
        at_least("path", path.len(), n_tokens);
        at_least("scales", scales.len(), n_tokens);
        at_least("best", best.len(), n_tokens * k);
        if n_sentences == 0 {
            return Ok(());
        }
        kernels::best_paths(
            self,
            grid((n_sentences, 1, 1), (THREADS, 1)),
            path.all_mut(),
            scales.all_mut(),
            best.all_mut(),
            local.all(),
            start.all(),
            blocks.all(),
            ints.at(offsets.clone()),
            ints.at(clusters.clone()),
            ints.at(block_of_pair.clone()),
            int(k),
        )
    }
}
