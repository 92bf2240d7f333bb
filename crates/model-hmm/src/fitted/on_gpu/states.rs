//! The states of sentences under a fitted model, some sentences at a time.

use super::batches::{batch, in_batches};
use super::on_device::OnDevice;
use super::paths::Traced;
use super::posteriors::Smoothed;
use crate::fitted::posterior::Posterior;
use crate::model::Hmm;
use crate::recursion::batch::Batch;
use latens_corpus::WordId;
use latens_cuda::CudaError;
use latens_model::DeviceError;
use rayon::prelude::*;

/// What the device computed for the sentences of a batch, none of which is empty.
pub(super) trait OfBatch<'a>: Sync + Sized {
    /// What it computed for a sentence.
    type OfSentence;

    fn compute(model: &mut OnDevice<'a>, batch: &Batch<'_>) -> Result<Self, CudaError>;

    /// The result of a sentence of the batch; `None` if the CPU must compute it.
    fn sentence(&self, hmm: &'a Hmm, at: usize, words: &[WordId]) -> Option<Self::OfSentence>;

    /// The result of any sentence by the CPU; `None` if the sentence is impossible.
    fn on_cpu(hmm: &'a Hmm, words: &[WordId]) -> Option<Self::OfSentence>;
}

/// A fitted model whose posteriors and paths are computed on the device.
pub(crate) struct DeviceStates<'a>(pub(super) OnDevice<'a>);

impl<'a> DeviceStates<'a> {
    pub(crate) fn open(hmm: &'a Hmm) -> Result<DeviceStates<'a>, DeviceError> {
        OnDevice::open(hmm).map(DeviceStates)
    }

    /// Applies a function to the index and the posterior of each sentence, which is `None` for an impossible one. Only some
    /// posteriors are in memory at a time.
    pub(crate) fn map_posteriors<R: Send>(
        &mut self,
        sentences: &[&[WordId]],
        finish: impl Fn(usize, Option<Posterior<'a>>) -> R + Sync,
    ) -> Result<Vec<R>, DeviceError> {
        self.map::<Smoothed, R>(sentences, finish)
    }

    /// Applies a function to the index and the most likely path of each sentence, which is `None` for an impossible one.
    pub(crate) fn map_paths<R: Send>(
        &mut self,
        sentences: &[&[WordId]],
        finish: impl Fn(usize, Option<Vec<u32>>) -> R + Sync,
    ) -> Result<Vec<R>, DeviceError> {
        self.map::<Traced, R>(sentences, finish)
    }

    fn map<B: OfBatch<'a>, R: Send>(
        &mut self,
        sentences: &[&[WordId]],
        finish: impl Fn(usize, Option<B::OfSentence>) -> R + Sync,
    ) -> Result<Vec<R>, DeviceError> {
        let hmm = self.0.hmm();
        let is_chain = |words: &[WordId]| words.iter().all(|&word| hmm.can_emit(word));
        let is_found = |idx: &u32| {
            let words = sentences[*idx as usize];
            !words.is_empty() && is_chain(words)
        };
        let idxs = (0..sentences.len() as u32).filter(is_found).collect();
        let mut results: Vec<Option<R>> = sentences.iter().map(|_| None).collect();
        for idxs in in_batches(idxs, sentences, self.0.max_tokens()) {
            let computed =
                B::compute(&mut self.0, &batch(&idxs, sentences)).map_err(DeviceError::cuda)?;
            let found = idxs.par_iter().enumerate().map(|(at, &idx)| {
                let words = sentences[idx as usize];
                let found = computed.sentence(hmm, at, words);
                finish(idx as usize, found.or_else(|| B::on_cpu(hmm, words)))
            });
            let found: Vec<R> = found.collect();
            idxs.iter().zip(found).for_each(|(&idx, found)| results[idx as usize] = Some(found));
        }
        // The others are empty, or have a word that no state emits.
        let other = |idx: usize| finish(idx, B::on_cpu(hmm, sentences[idx]));
        let results = results.into_iter().enumerate();
        Ok(results.map(|(idx, found)| found.unwrap_or_else(|| other(idx))).collect())
    }
}
