//! Most likely paths of sentences under a fitted model (Viterbi).

use super::batches::{Places, is_sound};
use super::of_batch::OfBatch;
use super::on_device::{OnDevice, OwnEmission};
use crate::cuda::context::Sizes;
use crate::fitted::posterior::Emitters;
use crate::model::Hmm;
use crate::recursion::batch::Batch;
use crate::space::state_set::StateSet;
use latens_corpus::WordId;
use latens_cuda::CudaError;

/// The most likely paths of a batch.
pub(super) struct Traced {
    places: Places,
    /// The scale of each token, 0 if the path takes a probability that the device raised to a lower bound. Raised
    /// probabilities make other paths more likely at most, so that a path without them is the most likely one.
    pub(super) scales: Vec<f32>,
    /// The number of states of a token.
    k: usize,
    /// The place of the state of each token among the states of its word.
    path: Vec<u32>,
}

impl<'a> OfBatch<'a> for Traced {
    type OfSentence = Vec<u32>;

    fn compute(
        model: &mut OnDevice<'a>,
        batch: &Batch<'_>,
        own: &[OwnEmission<'_>],
    ) -> Result<Traced, CudaError> {
        let hmm = model.hmm();
        let (k, n) = (hmm.space.k, hmm.n_states());
        model.run_in_sentences(batch, own, |device, tables, planned| {
            let (path, scales) = tables.trace(device, planned, Sizes { k, n, n_from: n })?;
            let (places, k) = (Places::new(planned.plan, batch), planned.plan.states_of_token(k));
            Ok(Traced { places, scales, k, path })
        })
    }

    fn sentence(&self, hmm: &'a Hmm, at: usize, words: &[WordId]) -> Option<Vec<u32>> {
        let rows = (0..words.len()).map(|token| self.places.row(at, token));
        if !rows.clone().all(|row| is_sound(self.scales[row].into())) {
            return None;
        }
        let state = |(row, &word): (usize, &WordId)| {
            let (of_word, _) = hmm.emitters(word)?;
            let place = self.path[row];
            Some(match of_word {
                // The device used all states.
                StateSet::List(list) if list.len() < self.k => place,
                _ => of_word.state(place as usize, hmm.space.k),
            })
        };
        rows.zip(words).map(state).collect()
    }

    fn on_cpu(hmm: &'a Hmm, words: Vec<Emitters<'a>>) -> Option<Vec<u32>> {
        hmm.chain_path(&hmm.chain_of(words))
    }
}
