//! Log-probabilities of text under a fitted model.

use super::batches::{Places, batch, in_batches, is_sound};
use super::on_device::OnDevice;
use crate::model::Hmm;
use crate::params::Memory;
use crate::recursion::batch::Batch;
use latens_corpus::{Sentences, WordId};
use latens_cuda::{CudaError, Precision};
use latens_model::{DeviceError, LanguageModel};

/// ln p of each token of a text given the tokens before it.
pub(crate) fn token_log_probs(hmm: &Hmm, text: &Sentences) -> Result<Vec<f64>, DeviceError> {
    let mut model = OnDevice::open(hmm)?;
    let (firsts, sequences) = sequences(hmm, text);
    let mut all = vec![f64::NEG_INFINITY; text.n_tokens()];
    for idxs in in_batches((0..sequences.len() as u32).collect(), &sequences, model.max_tokens()) {
        let (masses, places) =
            masses(&mut model, &batch(&idxs, &sequences)).map_err(DeviceError::cuda)?;
        for (at, &idx) in idxs.iter().enumerate() {
            let (words, first) = (sequences[idx as usize], firsts[idx as usize]);
            let masses = (0..words.len()).map(|token| masses[places.row(at, token)]);
            let out = &mut all[first..first + words.len()];
            if masses.clone().all(is_sound) {
                out.iter_mut().zip(masses).for_each(|(out, mass)| *out = mass.ln());
            } else {
                out.copy_from_slice(&hmm.token_log_probs(words));
            }
        }
    }
    Ok(all)
}

/// p(x_t | x_1 … x_{t−1}) of each token of a batch, and the places of the tokens.
pub(super) fn masses(
    model: &mut OnDevice<'_>,
    batch: &Batch<'_>,
) -> Result<(Vec<f64>, Places), CudaError> {
    let k = model.hmm().space.k;
    model.run(batch, &[], |device, tables, planned| {
        tables.forward(device, planned, k, Precision::Full)?;
        let masses = tables.masses(device, planned, k, Precision::Full)?;
        Ok((masses, Places::new(planned.plan, batch)))
    })
}

/// The sequences of a text that start from π, and the index of the first token of each. A word that no state emits ends a
/// sequence, and is in none.
fn sequences<'t>(hmm: &Hmm, text: &'t Sentences) -> (Vec<usize>, Vec<&'t [WordId]>) {
    let forgets = hmm.params.memory == Memory::Reset;
    let (mut firsts, mut sequences, mut begin) = (vec![], vec![], 0);
    let words = text.tokens();
    for (at, &word) in words.iter().enumerate() {
        let is_gap = !hmm.can_emit(word);
        let is_end = at + 1 == words.len() || (forgets && word == WordId::EOS);
        if !(is_gap || is_end) {
            continue;
        }
        let sequence = &words[begin..at + usize::from(!is_gap)];
        if !sequence.is_empty() {
            firsts.push(begin);
            sequences.push(sequence);
        }
        begin = at + 1;
    }
    (firsts, sequences)
}
