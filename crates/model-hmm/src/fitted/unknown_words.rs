//! Emission probabilities of words outside the vocabulary.

use crate::model::Hmm;
use crate::space::kept_states::KeptStates;
use crate::space::state_set::StateSet;
use crate::tables::probability_tables::Tables;
use crate::weights::neural::Neural;
use latens_corpus::WordId;
use latens_math::dot;
use std::borrow::Cow;

/// How a model treats words outside its vocabulary.
pub(crate) enum UnknownWords {
    /// It rejects them, because the training text has no unknown words.
    Refused,
    /// It treats them as `<unk>`.
    AsUnk,
    /// It reads their characters. The states of `<unk>` emit x with probability
    /// exp(f_z · U_x) / Σ_w exp(f_z · U_w + bias_w), up to a factor that is the same for all states.
    Read { neural: Box<Neural<f32>>, log_sums: Vec<f32> },
}

impl UnknownWords {
    /// How `hmm` treats unknown words.
    pub(crate) fn new(hmm: &Hmm) -> UnknownWords {
        match (&hmm.weights, hmm.emitters(WordId::UNK)) {
            (_, None) => UnknownWords::Refused,
            (Some(weights), Some((states, _))) if hmm.space.unknown.is_some() => {
                let mut neural = hmm.network();
                let (all, mut tables) = (KeptStates::all(&hmm.space), Tables::default());
                neural.forward_to_factors(weights, &hmm.space, &all, None, &mut tables);
                let log_sums = log_sums(hmm, &neural, weights, states);
                UnknownWords::Read { neural: Box::new(neural), log_sums }
            }
            _ => UnknownWords::AsUnk,
        }
    }

    /// The states that may emit an unknown word, with probabilities up to a common factor.
    pub(crate) fn emitters<'a>(
        &self,
        hmm: &'a Hmm,
        word: &str,
    ) -> Option<(StateSet<'a>, Cow<'a, [f32]>)> {
        match self {
            UnknownWords::Refused => None,
            UnknownWords::AsUnk => hmm.emitters(WordId::UNK),
            UnknownWords::Read { neural, log_sums } => {
                let (states, _) = hmm.emitters(WordId::UNK)?;
                let vector = neural.read_word(hmm.weights.as_ref()?, word)?;
                let list = states.list(hmm.space.k);
                let logits = list.iter().zip(log_sums).map(|(&state, log_sum)| {
                    dot::<1, _>(neural.emission_vector(state as usize), &vector) - log_sum
                });
                let logits: Vec<f32> = logits.collect();
                let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                if !largest.is_finite() {
                    // The weights of a model file may be so large that a spelling overflows.
                    return hmm.emitters(WordId::UNK);
                }
                let weight = |logit: &f32| (logit - largest).exp().max(0.0);
                Some((states, logits.iter().map(weight).collect()))
            }
        }
    }
}

/// ln Σ_w exp(f_z · U_w + bias_w) for some states, up to a constant, from the most likely word of each.
fn log_sums(hmm: &Hmm, neural: &Neural<f32>, weights: &[f32], states: StateSet<'_>) -> Vec<f32> {
    let (space, k) = (&hmm.space, hmm.space.k);
    let silent = space.unknown.map(|unknown| unknown.slot);
    let of_state = |&state: &u32| {
        let (cluster, i) = (state as usize / k, state as usize % k);
        let emission = |slot: &usize| match &space.lists {
            None => hmm.emission_of(*slot)[i],
            Some(lists) => {
                let at = lists.of(*slot).binary_search(&state);
                at.map_or(0.0, |at| hmm.emission_of(*slot)[at])
            }
        };
        let spelled = space.slots(cluster).filter(|slot| Some(*slot) != silent);
        let likely = spelled.max_by(|a, b| emission(a).total_cmp(&emission(b)));
        let Some(slot) = likely else { return 0.0 };
        let (vector, bias) = neural.word(weights, slot);
        dot::<1, _>(neural.emission_vector(state as usize), vector) + bias - emission(&slot).ln()
    };
    states.list(k).iter().map(of_state).collect()
}
