//! The states of sentences under a fitted model, some sentences at a time.

use super::batches::{batch, in_batches};
use super::of_batch::OfBatch;
use super::on_device::{OnDevice, OwnEmission};
use super::paths::Traced;
use super::posteriors::Smoothed;
use crate::fitted::posterior::{Emitters, Posterior};
use crate::model::Hmm;
use latens_corpus::WordId;
use latens_model::DeviceError;
use rayon::prelude::*;
use std::borrow::Cow;

/// A sentence, and its tokens that are emitted with probabilities of their own, in the order of the states of their words.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sentence<'w> {
    pub(crate) words: Cow<'w, [WordId]>,
    pub(crate) own: Vec<(usize, Vec<f32>)>,
}

impl<'w> Sentence<'w> {
    pub(crate) fn of(words: &'w [WordId]) -> Sentence<'w> {
        Sentence { words: Cow::Borrowed(words), own: Vec::new() }
    }

    /// The states of each token; `None` if a word has no states.
    pub(crate) fn emitters<'a>(&self, hmm: &'a Hmm) -> Option<Vec<Emitters<'a>>> {
        let mut emitters = hmm.emitters_of(&self.words)?;
        for (token, probabilities) in &self.own {
            emitters[*token].1 = Cow::Owned(probabilities.clone());
        }
        Some(emitters)
    }
}

/// A fitted model whose posteriors and paths are computed on the device.
pub(crate) struct DeviceStates<'a>(OnDevice<'a>);

impl<'a> DeviceStates<'a> {
    pub(crate) fn open(hmm: &'a Hmm) -> Result<DeviceStates<'a>, DeviceError> {
        OnDevice::open(hmm).map(DeviceStates)
    }

    /// Applies a function to the index and the posterior of each sentence, which is `None` for an impossible one. Only some
    /// posteriors are in memory at a time.
    pub(crate) fn map_posteriors<R: Send>(
        &mut self,
        sentences: &[Sentence<'_>],
        finish: impl Fn(usize, Option<Posterior<'a>>) -> R + Sync,
    ) -> Result<Vec<R>, DeviceError> {
        self.map::<Smoothed, R>(sentences, finish)
    }

    /// Applies a function to the index and the most likely path of each sentence, which is `None` for an impossible one.
    pub(crate) fn map_paths<R: Send>(
        &mut self,
        sentences: &[Sentence<'_>],
        finish: impl Fn(usize, Option<Vec<u32>>) -> R + Sync,
    ) -> Result<Vec<R>, DeviceError> {
        self.map::<Traced, R>(sentences, finish)
    }

    fn map<B: OfBatch<'a>, R: Send>(
        &mut self,
        sentences: &[Sentence<'_>],
        finish: impl Fn(usize, Option<B::OfSentence>) -> R + Sync,
    ) -> Result<Vec<R>, DeviceError> {
        let (hmm, mut results) = (self.0.hmm(), Vec::new());
        results.resize_with(sentences.len(), || None);
        let words: Vec<&[WordId]> = sentences.iter().map(|sentence| &*sentence.words).collect();
        let on_cpu = |idx: usize| {
            let emitters = sentences[idx].emitters(hmm);
            emitters.and_then(|words| B::on_cpu(hmm, words))
        };
        for idxs in in_batches(possible(hmm, &words), &words, self.0.max_tokens()) {
            let (batch, own) = (batch(&idxs, &words), own_emissions(&idxs, sentences));
            let computed = B::compute(&mut self.0, &batch, &own).map_err(DeviceError::cuda)?;
            let found = idxs.par_iter().enumerate().map(|(at, &idx)| {
                let found = computed.sentence(hmm, at, words[idx as usize]);
                finish(idx as usize, found.or_else(|| on_cpu(idx as usize)))
            });
            let found: Vec<R> = found.collect();
            idxs.iter().zip(found).for_each(|(&idx, found)| results[idx as usize] = Some(found));
        }
        // The others are empty, or have a word that no state emits.
        let results = results.into_iter().enumerate();
        Ok(results.map(|(idx, found)| found.unwrap_or_else(|| finish(idx, on_cpu(idx)))).collect())
    }
}

/// The sentences that the device can compute: they are not empty, and states emit all of their words.
fn possible(hmm: &Hmm, sentences: &[&[WordId]]) -> Vec<u32> {
    let is_possible = |idx: &u32| {
        let words = sentences[*idx as usize];
        !words.is_empty() && words.iter().all(|&word| hmm.can_emit(word))
    };
    (0..sentences.len() as u32).filter(is_possible).collect()
}

/// The tokens of a batch of sentences that have emission probabilities of their own.
fn own_emissions<'s>(idxs: &[u32], sentences: &'s [Sentence<'_>]) -> Vec<OwnEmission<'s>> {
    let of_sentence = |(at, &idx): (usize, &u32)| {
        let own = sentences[idx as usize].own.iter();
        own.map(move |(token, p)| OwnEmission { sentence: at, token: *token, probabilities: p })
    };
    idxs.iter().enumerate().flat_map(of_sentence).collect()
}
