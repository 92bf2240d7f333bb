//! Posteriors of sentences under a fitted model.

use super::batches::{Places, is_sound};
use super::of_batch::OfBatch;
use super::on_device::{OnDevice, OwnEmission};
use crate::cuda::context::Sizes;
use crate::fitted::posterior::{Emitters, Posterior};
use crate::model::Hmm;
use crate::recursion::batch::Batch;
use crate::space::state_set::StateSet;
use latens_corpus::WordId;
use latens_cuda::{CudaError, Precision};

/// Both passes of the recursion over a batch.
pub(super) struct Smoothed {
    places: Places,
    /// p(x_t | x_1 … x_{t−1}) of each token.
    pub(super) masses: Vec<f64>,
    /// The number of states of a token.
    k: usize,
    /// γ of each token.
    nodes: Vec<f32>,
}

impl<'a> OfBatch<'a> for Smoothed {
    type OfSentence = Posterior<'a>;

    fn compute(
        model: &mut OnDevice<'a>,
        batch: &Batch<'_>,
        own: &[OwnEmission<'_>],
    ) -> Result<Smoothed, CudaError> {
        let hmm = model.hmm();
        let (k, n) = (hmm.space.k, hmm.n_states());
        model.run(batch, own, |device, tables, planned| {
            tables.reserve_to_smooth(device, planned.plan, k)?;
            let sizes = Sizes { k, n, n_from: n };
            tables.smooth((device, device), planned, sizes, Precision::Full)?;
            let masses = tables.masses(device, planned, k, Precision::Full)?;
            let k = planned.plan.states_of_token(k);
            let nodes = device.download_first(&tables.nodes, planned.plan.n_tokens() * k)?;
            Ok(Smoothed { places: Places::new(planned.plan, batch), masses, k, nodes })
        })
    }

    fn sentence(&self, hmm: &'a Hmm, at: usize, words: &[WordId]) -> Option<Posterior<'a>> {
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

    fn on_cpu(hmm: &'a Hmm, words: Vec<Emitters<'a>>) -> Option<Posterior<'a>> {
        hmm.chain_posterior(hmm.chain_of(words))
    }
}
