//! The posterior and the most likely states of a sentence.

use crate::model::Hmm;
use crate::space::state_set::StateSet;
use latens_corpus::WordId;
use latens_math::chain::{Chain, LogChain, Smoothed, log_smooth, log_viterbi, smooth, viterbi};
use latens_model::Matrix;
use std::borrow::Cow;

/// The states that may emit a word, and the probability with which each emits it.
pub(crate) type Emitters<'a> = (StateSet<'a>, Cow<'a, [f32]>);

/// The posterior of the states of every token of a sentence.
pub(crate) struct Posterior<'a> {
    /// Number of states per cluster.
    k: usize,
    /// The states that may emit each token.
    states: Vec<StateSet<'a>>,
    /// Their probabilities, one row per token. Every token has the same number of states.
    values: Vec<f32>,
}

impl<'a> Posterior<'a> {
    /// # Panics
    /// If the values are not whole rows.
    pub(crate) fn new(k: usize, states: Vec<StateSet<'a>>, values: Vec<f32>) -> Posterior<'a> {
        assert_eq!(values.len() % states.len().max(1), 0, "one row per token");
        Posterior { k, states, values }
    }

    /// Number of tokens.
    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    /// The states that may emit a token, in ascending order, and their probabilities.
    pub(crate) fn states(&self, at: usize) -> (StateSet<'a>, &[f32]) {
        let n = self.values.len() / self.states.len();
        (self.states[at], &self.values[at * n..(at + 1) * n])
    }

    /// The states that may emit a token, in ascending order, each with its probability.
    pub(crate) fn row(&self, at: usize) -> impl Iterator<Item = (u32, f32)> + Clone + '_ {
        let (states, values) = self.states(at);
        values.iter().enumerate().map(move |(i, &p)| (states.state(i, self.k), p))
    }
}

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
        let found = self.sentence_posterior(sentence)?;
        for at in 0..found.len() {
            found.row(at).for_each(|(state, p)| posterior[(at, state as usize)] = p);
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
        self.chain_path(&self.chain(sentence)?)
    }

    /// The posterior of a sentence; `None` if it is impossible.
    pub(crate) fn sentence_posterior(&self, sentence: &[WordId]) -> Option<Posterior<'_>> {
        self.chain_posterior(self.chain(sentence)?)
    }

    /// The posterior of any chain; `None` if it has no path.
    pub(crate) fn chain_posterior<'a>(&self, chain: SentenceChain<'a>) -> Option<Posterior<'a>> {
        let (k, n_steps) = (self.space.k, chain.states.len());
        if n_steps == 0 {
            return Some(Posterior::new(k, vec![], vec![]));
        }
        let n = chain.states[0].len(k);
        let mut values = vec![0.0; n_steps * n];
        let mut smoothed = Smoothed::default();
        if smooth(&chain, &mut smoothed).is_some() {
            let rows = values.chunks_exact_mut(n).enumerate();
            rows.for_each(|(step, row)| row.copy_from_slice(smoothed.nodes(step)));
        } else {
            let set = |step: usize, nodes: &[f64]| {
                let row = values[step * n..(step + 1) * n].iter_mut();
                row.zip(nodes).for_each(|(value, &p)| *value = p as f32);
            };
            if log_smooth(&chain, set, |_, _| ()) == f64::NEG_INFINITY {
                return None;
            }
        }
        Some(Posterior::new(k, chain.states, values))
    }

    /// The most likely path of any chain; `None` if it has no path.
    pub(crate) fn chain_path(&self, chain: &SentenceChain<'_>) -> Option<Vec<u32>> {
        if chain.states.is_empty() {
            return Some(vec![]);
        }
        let (path, log_prob) = viterbi(chain).unwrap_or_else(|| log_viterbi(chain));
        let state = |(at, &i): (usize, &u32)| chain.states[at].state(i as usize, self.space.k);
        (log_prob > f64::NEG_INFINITY).then(|| path.iter().enumerate().map(state).collect())
    }

    /// The states that may emit a word, and the probability with which each emits it.
    pub(crate) fn emitters(&self, word: WordId) -> Option<Emitters<'_>> {
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

    /// The states of each word of a sentence; `None` if it has a word that no state emits.
    pub(crate) fn emitters_of(&self, sentence: &[WordId]) -> Option<Vec<Emitters<'_>>> {
        sentence.iter().map(|&word| self.emitters(word)).collect()
    }

    /// The chain of a sentence; `None` if it has a word that no state emits.
    fn chain<'a>(&'a self, sentence: &[WordId]) -> Option<SentenceChain<'a>> {
        Some(self.chain_of(self.emitters_of(sentence)?))
    }

    /// The chain of words with given states and emission probabilities.
    pub(crate) fn chain_of<'a>(
        &'a self,
        words: impl IntoIterator<Item = Emitters<'a>>,
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
