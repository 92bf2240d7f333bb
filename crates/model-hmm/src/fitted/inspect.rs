//! The probabilities of a fitted model.

use crate::model::Hmm;
use crate::params::Memory;
use crate::space::state_set::StateSet;
use latens_corpus::WordId;

impl Hmm {
    /// The number of hidden states.
    pub fn n_states(&self) -> usize {
        self.space.n_states()
    }

    /// The number of words in the vocabulary.
    pub fn n_words(&self) -> usize {
        self.lexicon.vocab.len()
    }

    /// The probability of every state at the start of a sentence.
    pub fn start(&self) -> &[f32] {
        &self.start
    }

    /// p(z' | z): the probability of every state after `state`.
    ///
    /// Computes only this row, even if the transitions of the model are not stored.
    ///
    /// # Panics
    /// If there is no such state.
    pub fn transition(&self, state: usize) -> Vec<f32> {
        self.check_state(state);
        let from = [state as u32];
        let row = |cluster| {
            self.blocks.pairs(&self.space, StateSet::List(&from), StateSet::Cluster(cluster))
        };
        (0..self.space.n_clusters()).flat_map(|cluster| row(cluster).into_owned()).collect()
    }

    /// p(x | z): the probability of every word of the vocabulary in `state`.
    ///
    /// # Panics
    /// If there is no such state.
    pub fn emission(&self, state: usize) -> Vec<f32> {
        let mut probabilities = vec![0.0; self.n_words()];
        self.emitted_by(state).for_each(|(word, p)| probabilities[word.index()] = p);
        probabilities
    }

    /// The `n` most likely words of `state`, most likely first, with their probabilities.
    ///
    /// # Panics
    /// If there is no such state.
    pub fn top_words(&self, state: usize, n: usize) -> Vec<(&str, f32)> {
        let words = self.top_word_ids(state, n).into_iter();
        words.map(|(word, p)| (self.lexicon.vocab.word(word), p)).collect()
    }

    /// The ids of [`Hmm::top_words`].
    ///
    /// # Panics
    /// If there is no such state.
    pub fn top_word_ids(&self, state: usize, n: usize) -> Vec<(WordId, f32)> {
        let mut words: Vec<_> = self.emitted_by(state).filter(|&(_, p)| p > 0.0).collect();
        words.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        words.truncate(n);
        words
    }

    /// The share of the tokens of generated text that each state emits, in the long run.
    ///
    /// The stationary distribution of the state of a token, by power iteration: Z² multiplications per iteration
    /// for Z states. If sentences are independent, the state after `<eos>` is drawn from the start distribution.
    pub fn stationary(&self) -> Vec<f64> {
        /// Iteration stops when the distribution changes by less than this in total.
        const TOLERANCE: f64 = 1e-9;
        const MAX_ITERATIONS: usize = 10_000;
        let n = self.n_states();
        let mut shares = vec![1.0 / n as f64; n];
        for _ in 0..MAX_ITERATIONS {
            let mut next = self.step(&shares);
            let total: f64 = next.iter().sum();
            let mut change = 0.0;
            // Half a step each time: periodic chains converge too.
            for (share, next) in shares.iter().zip(&mut next) {
                *next = (share + *next / total) / 2.0;
                change += (share - *next).abs();
            }
            shares = next;
            if change < TOLERANCE {
                break;
            }
        }
        shares
    }

    /// The distribution of the state of the next token, given that of a token.
    fn step(&self, shares: &[f64]) -> Vec<f64> {
        let (k, m) = (self.space.k, self.space.n_clusters());
        let (continuing, ended) = self.continuing(shares);
        let mut next: Vec<f64> = self.start.iter().map(|&p| f64::from(p) * ended).collect();
        for (from, to) in (0..m).flat_map(|from| (0..m).map(move |to| (from, to))) {
            let block =
                self.blocks.pairs(&self.space, StateSet::Cluster(from), StateSet::Cluster(to));
            let next = &mut next[to * k..(to + 1) * k];
            for (row, share) in block.chunks_exact(k).zip(&continuing[from * k..]) {
                next.iter_mut().zip(row).for_each(|(next, &a)| *next += share * f64::from(a));
            }
        }
        next
    }

    /// Splits the shares of states into those that continue and the total of those that end a sentence.
    fn continuing(&self, shares: &[f64]) -> (Vec<f64>, f64) {
        let (mut continuing, mut ended) = (shares.to_vec(), 0.0);
        if self.params.memory == Memory::Carry {
            return (continuing, ended);
        }
        if let Some((states, local)) = self.emitters(WordId::EOS) {
            for (&state, &p) in states.list(self.space.k).iter().zip(&*local) {
                let share = &mut continuing[state as usize];
                ended += *share * f64::from(p);
                *share *= 1.0 - f64::from(p);
            }
        }
        (continuing, ended)
    }

    /// The words that `state` may emit, with their probabilities.
    pub(crate) fn emitted_by(&self, state: usize) -> impl Iterator<Item = (WordId, f32)> {
        self.check_state(state);
        let (cluster, i) = (state / self.space.k, state % self.space.k);
        self.space.slots(cluster).filter_map(move |slot| {
            let at = match &self.space.lists {
                None => i,
                Some(lists) => lists.of(slot).binary_search(&(state as u32)).ok()?,
            };
            Some((self.space.words()[slot], self.emission_of(slot)[at]))
        })
    }

    fn check_state(&self, state: usize) {
        let n_states = self.n_states();
        assert!(state < n_states, "state {state} of a model with {n_states} states");
    }
}
