//! What the device computes for sentences.

use super::on_device::{OnDevice, OwnEmission};
use crate::fitted::posterior::Emitters;
use crate::model::Hmm;
use crate::recursion::batch::Batch;
use latens_corpus::WordId;
use latens_cuda::CudaError;

/// What the device computed for the sentences of a batch, none of which is empty.
pub(super) trait OfBatch<'a>: Sync + Sized {
    /// What it computed for a sentence.
    type OfSentence;

    fn compute(
        model: &mut OnDevice<'a>,
        batch: &Batch<'_>,
        own: &[OwnEmission<'_>],
    ) -> Result<Self, CudaError>;

    /// The result of a sentence of the batch; `None` if the CPU must compute it.
    fn sentence(&self, hmm: &'a Hmm, at: usize, words: &[WordId]) -> Option<Self::OfSentence>;

    /// The result of any sentence by the CPU; `None` if the sentence is impossible.
    fn on_cpu(hmm: &'a Hmm, words: Vec<Emitters<'a>>) -> Option<Self::OfSentence>;
}
