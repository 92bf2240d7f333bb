//! Posteriors of sentences under a fitted model.

use super::batches::{Places, batch, in_batches, is_sound};
use super::on_device::OnDevice;
use crate::cuda::context::Sizes;
use crate::fitted::posterior::Posterior;
use crate::model::Hmm;
use crate::recursion::batch::Batch;
use crate::space::state_set::StateSet;
use latens_corpus::WordId;
use latens_cuda::{CudaError, Precision};
use latens_model::DeviceError;
use rayon::prelude::*;

/// A fitted model whose posteriors are computed on the device.
pub(crate) struct DevicePosteriors<'a>(OnDevice<'a>);

/// What the device computed for a batch.
pub(super) struct Smoothed {
    places: Places,
    /// p(x_t | x_1 … x_{t−1}) of each token.
    pub(super) masses: Vec<f64>,
    /// The number of states of a token.
    k: usize,
    /// γ of each token.
    nodes: Vec<f32>,
}

impl<'a> DevicePosteriors<'a> {
    pub(crate) fn open(hmm: &'a Hmm) -> Result<DevicePosteriors<'a>, DeviceError> {
        OnDevice::open(hmm).map(DevicePosteriors)
    }

    /// Applies a function to the index and the posterior of each sentence, which is `None` for an impossible one. Only some
    /// posteriors are in memory at a time.
    pub(crate) fn map<R: Send>(
        &mut self,
        sentences: &[&[WordId]],
        finish: impl Fn(usize, Option<Posterior<'a>>) -> R + Sync,
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
            let smoothed = self.smooth(&batch(&idxs, sentences)).map_err(DeviceError::cuda)?;
            let found = idxs.par_iter().enumerate().map(|(at, &idx)| {
                let words = sentences[idx as usize];
                let posterior = smoothed.posterior(hmm, at, words);
                finish(idx as usize, posterior.or_else(|| hmm.sentence_posterior(words)))
            });
            let found: Vec<R> = found.collect();
            idxs.iter().zip(found).for_each(|(&idx, found)| results[idx as usize] = Some(found));
        }
        // The others are empty, or have a word that no state emits.
        let other = |idx: usize| finish(idx, hmm.sentence_posterior(sentences[idx]));
        let results = results.into_iter().enumerate();
        Ok(results.map(|(idx, found)| found.unwrap_or_else(|| other(idx))).collect())
    }

    /// Both passes of the recursion over a batch.
    pub(super) fn smooth(&mut self, batch: &Batch<'_>) -> Result<Smoothed, CudaError> {
        let hmm = self.0.hmm();
        let (k, n) = (hmm.space.k, hmm.n_states());
        self.0.run(batch, |device, tables, planned| {
            tables.reserve_to_smooth(device, planned.plan, k)?;
            let sizes = Sizes { k, n, n_from: n };
            tables.smooth((device, device), planned, sizes, Precision::Full)?;
            let masses = tables.masses(device, planned, k, Precision::Full)?;
            let k = planned.plan.states_of_token(k);
            let nodes = device.download_first(&tables.nodes, planned.plan.n_tokens() * k)?;
            Ok(Smoothed { places: Places::new(planned.plan, batch), masses, k, nodes })
        })
    }
}

impl Smoothed {
    /// The posterior of a sentence of the batch; `None` if the CPU must compute it.
    fn posterior<'a>(&self, hmm: &'a Hmm, at: usize, words: &[WordId]) -> Option<Posterior<'a>> {
        let rows = (0..words.len()).map(|token| self.places.row(at, token));
        if !rows.clone().all(|row| is_sound(self.masses[row])) {
            return None;
        }
        let mut values = Vec::with_capacity(words.len() * hmm.space.states_per_word());
        let mut states = Vec::with_capacity(words.len());
        for (row, &word) in rows.zip(words) {
            let (of_word, _) = hmm.emitters(word)?;
            let row = &self.nodes[row * self.k..(row + 1) * self.k];
            match of_word {
                // The device used all states, with zeros.
                StateSet::List(list) if list.len() < self.k => {
                    values.extend(list.iter().map(|&state| row[state as usize]));
                }
                _ => values.extend_from_slice(row),
            }
            states.push(of_word);
        }
        Some(Posterior::new(hmm.space.k, states, values))
    }
}
