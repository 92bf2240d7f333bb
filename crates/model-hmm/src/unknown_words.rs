//! Words that a model has no number for.

use crate::model::Hmm;
use crate::neural::Neural;
use crate::params::{HmmParams, WordVectors};
use crate::support::Support;
use crate::tables::{Kept, Tables};
use crate::transitions::States;
use latens_corpus::{Corpus, Vocab, VocabLimits, WordId};
use latens_math::{Real, dot};
use std::borrow::Cow;

/// The text whose words are to be clustered for a model of `corpus`.
///
/// For a model that reads letters, words that were seen once are `<unk>` there. So they share one cluster of
/// the model, whose states learn how rare words are spelt, and there new words are looked for later. For
/// other models it is the text itself.
pub fn text_to_cluster<'a>(params: &HmmParams, corpus: &'a Corpus) -> Cow<'a, Corpus> {
    match params.word_vectors {
        WordVectors::Words => Cow::Borrowed(corpus),
        WordVectors::Chars => {
            let limits = corpus.lexicon.limits;
            let min_count = limits.min_count.max(2);
            Cow::Owned(corpus.limited(&VocabLimits { min_count, ..limits }))
        }
    }
}

/// What the states of `<unk>` leave to words that come later, in a model that reads letters and never saw
/// `<unk>` itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Unknown {
    /// The slot of `<unk>`, which stands for them where only its number is at hand. No state emits it while the
    /// model learns.
    pub(crate) slot: usize,
    /// The probability of all of them together. It is fixed, so that models can be compared on text that has
    /// some: n₁ / (n + n₁), where n₁ of the n tokens of the cluster are words that were seen once. These were
    /// new when they came (Good–Turing).
    share: f64,
}

impl Support {
    /// The same with room for words that come later, if they are read off letters.
    pub(crate) fn with_unknown(mut self, params: &HmmParams, vocab: &Vocab) -> Support {
        let reads = params.word_vectors == WordVectors::Chars && vocab.count(WordId::UNK) == 0;
        self.unknown = reads.then(|| self.unknown(vocab)).flatten();
        self
    }

    fn unknown(&self, vocab: &Vocab) -> Option<Unknown> {
        let (slot, cluster) = (self.slot(WordId::UNK)?, self.cluster(WordId::UNK)?);
        let counts = self.slots(cluster).map(|slot| vocab.count(self.words()[slot]));
        let (n, once) = (counts.clone().sum::<u64>(), counts.filter(|&count| count == 1).count());
        Some(Unknown { slot, share: once as f64 / (n as f64 + once as f64).max(1.0) })
    }

    /// Gives `<unk>` its share in the emissions of all states that emit it.
    pub(crate) fn make_room_for_unknown_words<T: Real>(&self, tables: &mut Tables<T>) {
        let (Some(unknown), Some(cluster)) = (self.unknown, self.cluster(WordId::UNK)) else {
            return;
        };
        let Tables { emission, lists, .. } = tables;
        let emits: Vec<bool> = (0..self.k).map(|state| self.allows(unknown.slot, state)).collect();
        let (share, rest) = (T::of(unknown.share), T::of(1.0 - unknown.share));
        for slot in self.slots(cluster) {
            let (row, states): (_, Cow<'_, [u32]>) = match lists {
                Some(lists) => (lists.range(slot), lists.of(slot).into()),
                None => (slot * self.k..(slot + 1) * self.k, (0..self.k as u32).collect()),
            };
            for (b, &state) in emission[row].iter_mut().zip(&*states) {
                *b = match (slot == unknown.slot, emits[state as usize]) {
                    (true, true) => share,
                    (true, false) => T::zero(),
                    (false, true) => *b * rest,
                    (false, false) => *b,
                };
            }
        }
    }
}

/// How a model takes words that it has no number for.
pub(crate) enum UnknownWords {
    /// Not at all: it saw nothing of the kind.
    Refused,
    /// As `<unk>`, which it saw in their place.
    AsUnk,
    /// By their letters. The states of `<unk>` emit x with probability exp(f_z · U_x) / Σ_w exp(f_z · U_w + bias_w)
    /// but for a factor that is the same for all of them.
    Read { neural: Box<Neural<f32>>, log_sums: Vec<f32> },
}

impl UnknownWords {
    pub(crate) fn of(hmm: &Hmm) -> UnknownWords {
        match (&hmm.weights, hmm.emitters(WordId::UNK)) {
            (_, None) => UnknownWords::Refused,
            (Some(weights), Some((states, _))) if hmm.support.unknown.is_some() => {
                let mut neural = hmm.network();
                let (all, mut tables) = (Kept::all(&hmm.support), Tables::default());
                neural.forward_to_factors(weights, &hmm.support, &all, None, &mut tables);
                let log_sums = log_sums(hmm, &neural, weights, states);
                UnknownWords::Read { neural: Box::new(neural), log_sums }
            }
            _ => UnknownWords::AsUnk,
        }
    }

    /// The states that can have emitted a new word, and how likely each does, but for a common factor.
    pub(crate) fn emitters<'a>(
        &self,
        hmm: &'a Hmm,
        word: &str,
    ) -> Option<(States<'a>, Cow<'a, [f32]>)> {
        match self {
            UnknownWords::Refused => None,
            UnknownWords::AsUnk => hmm.emitters(WordId::UNK),
            UnknownWords::Read { neural, log_sums } => {
                let (states, _) = hmm.emitters(WordId::UNK)?;
                let vector = neural.read_word(hmm.weights.as_ref()?, word)?;
                let list = states.list(hmm.support.k);
                let logits = list.iter().zip(log_sums).map(|(&state, log_sum)| {
                    dot::<1, _>(neural.emission_vector(state as usize), &vector) - log_sum
                });
                let logits: Vec<f32> = logits.collect();
                let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                Some((states, logits.iter().map(|logit| (logit - largest).exp()).collect()))
            }
        }
    }
}

/// ln Σ_w exp(f_z · U_w + bias_w) of some states, from the word that each emits most likely, but for a constant.
fn log_sums(hmm: &Hmm, neural: &Neural<f32>, weights: &[f32], states: States<'_>) -> Vec<f32> {
    let (support, k) = (&hmm.support, hmm.support.k);
    let silent = support.unknown.map(|unknown| unknown.slot);
    let of_state = |&state: &u32| {
        let (cluster, i) = (state as usize / k, state as usize % k);
        let emission = |slot: &usize| match &support.lists {
            None => hmm.emission_of(*slot)[i],
            Some(lists) => {
                let at = lists.of(*slot).binary_search(&state);
                at.map_or(0.0, |at| hmm.emission_of(*slot)[at])
            }
        };
        let spelt = support.slots(cluster).filter(|slot| Some(*slot) != silent);
        let likely = spelt.max_by(|a, b| emission(a).total_cmp(&emission(b)));
        let Some(slot) = likely else { return 0.0 };
        let (vector, bias) = neural.word(weights, slot);
        dot::<1, _>(neural.emission_vector(state as usize), vector) + bias - emission(&slot).ln()
    };
    states.list(k).iter().map(of_state).collect()
}
