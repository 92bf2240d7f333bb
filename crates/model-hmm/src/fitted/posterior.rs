//! The posterior and the most likely states of a sentence.

use crate::model::Hmm;
use crate::space::state_set::StateSet;
use latens_corpus::WordId;
use latens_math::chain::{Chain, LogChain, Smoothed, log_smooth, log_viterbi, smooth, viterbi};
use latens_model::Matrix;
use std::borrow::Cow;

/// For every token, the states that may emit it in ascending order, each with its posterior probability.
pub(crate) type SparsePosterior = Vec<Vec<(u32, f32)>>;

impl Hmm {
    /// The posterior of the states, given the whole sentence: one row per word, one column per state.
    ///
    /// The sentence should end with `<eos>`; see [`Hmm::posterior`] for text. Returns `None` if the sentence is
    /// impossible.
    ///
    /// # Panics
    /// If a word is not in the vocabulary.
    pub fn posterior_of(&self, sentence: &[WordId]) -> Option<Matrix<f32>> {
        let mut posterior = Matrix::zeros(sentence.len(), self.space.n_states());
        for (row_idx, row) in self.sparse_posterior(sentence)?.into_iter().enumerate() {
            row.into_iter().for_each(|(state, p)| posterior[(row_idx, state as usize)] = p);
        }
        Some(posterior)
    }

    /// The most likely path of states through the sentence (Viterbi), one state per word.
    ///
    /// The sentence should end with `<eos>`; see [`Hmm::viterbi`] for text. Returns `None` if the sentence is
    /// impossible.
    ///
    /// # Panics
    /// If a word is not in the vocabulary.
    pub fn viterbi_of(&self, sentence: &[WordId]) -> Option<Vec<u32>> {
        let chain = self.chain(sentence)?;
        if sentence.is_empty() {
            return Some(vec![]);
        }
        let (path, log_prob) = viterbi(&chain).unwrap_or_else(|| log_viterbi(&chain));
        let state = |(at, &i): (usize, &u32)| chain.states[at].state(i as usize, self.space.k);
        (log_prob > f64::NEG_INFINITY).then(|| path.iter().enumerate().map(state).collect())
    }

    /// The posterior of a sentence; `None` if it is impossible.
    pub(crate) fn sparse_posterior(&self, sentence: &[WordId]) -> Option<SparsePosterior> {
        self.chain_posterior(&self.chain(sentence)?)
    }

    /// The posterior of any chain; `None` if it has no path.
    pub(crate) fn chain_posterior(&self, chain: &SentenceChain<'_>) -> Option<SparsePosterior> {
        let n_steps = chain.states.len();
        if n_steps == 0 {
            return Some(vec![]);
        }
        let mut rows = vec![Vec::new(); n_steps];
        let mut set = |step: usize, values: &mut dyn Iterator<Item = f32>| {
            let states = chain.states[step];
            let row = values.enumerate().map(|(i, p)| (states.state(i, self.space.k), p));
            rows[step] = row.collect();
        };
        let mut smoothed = Smoothed::default();
        if smooth(chain, &mut smoothed).is_some() {
            (0..n_steps).for_each(|step| set(step, &mut smoothed.nodes(step).iter().copied()));
        } else {
            let log_sum = log_smooth(
                chain,
                |step, nodes| set(step, &mut nodes.iter().map(|&p| p as f32)),
                |_, _| (),
            );
            if log_sum == f64::NEG_INFINITY {
                return None;
            }
        }
        Some(rows)
    }

    /// The states that may emit a word, and the probability with which each emits it.
    pub(crate) fn emitters(&self, word: WordId) -> Option<(StateSet<'_>, Cow<'_, [f32]>)> {
        let (cluster, slot) = (self.space.cluster(word)?, self.space.slot(word)?);
        let states = match &self.space.lists {
            None => StateSet::Cluster(cluster),
            Some(lists) => StateSet::List(lists.of(slot)),
        };
        Some((states, Cow::Borrowed(self.emission_of(slot))))
    }

    /// The probability of a slot under each state that may emit it.
    pub(crate) fn emission_of(&self, slot: usize) -> &[f32] {
        let n = self.space.states_per_word();
        &self.emission[slot * n..(slot + 1) * n]
    }

    /// π for some states.
    pub(crate) fn start_of(&self, states: StateSet<'_>) -> Vec<f32> {
        states.list(self.space.k).iter().map(|&state| self.start[state as usize]).collect()
    }

    /// The chain of a sentence; `None` if it has a word that no state emits.
    fn chain<'a>(&'a self, sentence: &[WordId]) -> Option<SentenceChain<'a>> {
        let words = sentence.iter().map(|&word| self.emitters(word));
        Some(self.chain_of(words.collect::<Option<Vec<_>>>()?))
    }

    /// The chain of words with given states and emission probabilities.
    pub(crate) fn chain_of<'a>(
        &'a self,
        words: impl IntoIterator<Item = (StateSet<'a>, Cow<'a, [f32]>)>,
    ) -> SentenceChain<'a> {
        let mut chain = SentenceChain {
            hmm: self,
            states: vec![],
            first: vec![],
            local: vec![],
            pairs: vec![],
        };
        for (states, local) in words {
            let local = match chain.states.last() {
                Some(&before) => {
                    chain.pairs.push(self.blocks.pairs(&self.space, before, states));
                    local
                }
                None => {
                    let start = self.start_of(states);
                    let factors = start.iter().zip(&*local);
                    let logs = |(&a, &b): (&f32, &f32)| f64::from(a).ln() + f64::from(b).ln();
                    chain.first = factors.clone().map(logs).collect();
                    factors.map(|(start, local)| start * local).collect()
                }
            };
            chain.states.push(states);
            chain.local.push(local);
        }
        chain
    }
}

/// A sentence as a chain. The first step includes π.
pub(crate) struct SentenceChain<'a> {
    hmm: &'a Hmm,
    states: Vec<StateSet<'a>>,
    /// ln π + ln b of the first step, whose product may underflow.
    first: Vec<f64>,
    local: Vec<Cow<'a, [f32]>>,
    pairs: Vec<Cow<'a, [f32]>>,
}

impl Chain<f32> for SentenceChain<'_> {
    fn n_steps(&self) -> usize {
        self.states.len()
    }

    fn local(&self, step: usize) -> &[f32] {
        &self.local[step]
    }

    fn pairs(&self, step: usize) -> &[f32] {
        &self.pairs[step]
    }
}

impl LogChain for SentenceChain<'_> {
    fn n_steps(&self) -> usize {
        self.states.len()
    }

    fn log_local(&self, step: usize) -> Vec<f64> {
        if step == 0 {
            return self.first.clone();
        }
        self.local[step].iter().map(|&p| f64::from(p).ln()).collect()
    }

    fn log_pairs(&self, step: usize) -> Vec<f64> {
        let Hmm { blocks, space, .. } = self.hmm;
        blocks.log_pairs(space, self.states[step], self.states[step + 1])
    }
}
