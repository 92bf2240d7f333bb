//! The states of a model, and the words that each may emit.

use crate::params::{Constraint, HmmParams, WordEmbedding};
use crate::space::clusters::{NO_CLUSTER, assign_clusters, one_cluster};
use crate::space::state_lists::StateLists;
use crate::space::unknown_share::UnknownShare;
use latens_corpus::{Vocab, WordId};
use latens_model::{FitError, WordClusters};
use std::borrow::Cow;
use std::ops::Range;

/// The value of `slot_of` for a word without a slot.
const NO_SLOT: u32 = u32::MAX;

/// The clusters of words and the states of each cluster: cluster c has the states c·k to c·k + k − 1.
///
/// A model without clusters has one cluster with all words. Every word that can be emitted has a *slot*. Slots
/// are numbered by cluster, then by word id, so that the words of a cluster are adjacent in all tables.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StateSpace {
    /// k: the number of states per cluster.
    pub(crate) k: usize,
    cluster_of: Vec<u32>,
    slot_of: Vec<u32>,
    words: Vec<WordId>,
    /// The first slot of each cluster, and the end of the last one.
    begins: Vec<usize>,
    /// The states that may emit each slot, if these are not all states of its cluster.
    pub(crate) lists: Option<StateLists>,
    /// The probability of unknown words, if the model reads their characters.
    pub(crate) unknown: Option<UnknownShare>,
}

impl StateSpace {
    /// The state space of given clusters, [`NO_CLUSTER`] for words that no state emits.
    pub(crate) fn new(k: usize, n_clusters: usize, cluster_of: Vec<u32>) -> StateSpace {
        let mut members = vec![Vec::new(); n_clusters];
        for (word, &cluster) in cluster_of.iter().enumerate().filter(|(_, c)| **c != NO_CLUSTER) {
            members[cluster as usize].push(WordId::from(word));
        }
        let mut begins = vec![0];
        for words in &members {
            begins.push(begins[begins.len() - 1] + words.len());
        }
        let words = members.concat();
        let mut slot_of = vec![NO_SLOT; cluster_of.len()];
        for (slot, word) in words.iter().enumerate() {
            slot_of[word.index()] = slot as u32;
        }
        StateSpace { k, cluster_of, slot_of, words, begins, lists: None, unknown: None }
    }

    /// The state space that the parameters ask for.
    ///
    /// No state emits a word that the text does not contain, except for the `<unk>` of a model with
    /// character-based word vectors.
    pub(crate) fn from_params(
        params: &HmmParams,
        vocab: &Vocab,
        clusters: Option<&WordClusters>,
    ) -> Result<StateSpace, FitError> {
        let space = match params.constraint {
            Constraint::None => StateSpace::new(params.n_states, 1, one_cluster(params, vocab)),
            Constraint::Brown => {
                let clusters = clusters
                    .ok_or_else(|| FitError::not_enough_data("clusters of words", "none"))?;
                let cluster_of = assign_clusters(params, vocab, clusters)?;
                StateSpace::new(params.states_per_word(), params.n_clusters, cluster_of)
            }
            Constraint::Uniform => {
                let mut space = StateSpace::new(params.n_states, 1, one_cluster(params, vocab));
                let lists = StateLists::draw(params, space.n_slots());
                lists.check(params)?;
                space.lists = Some(lists);
                space
            }
        };
        Ok(space.with_unknown_share(params, vocab))
    }

    /// Sets aside probability for unknown words, if the model reads their characters and never saw `<unk>`.
    pub(crate) fn with_unknown_share(mut self, params: &HmmParams, vocab: &Vocab) -> StateSpace {
        let reads = params.word_vectors == WordEmbedding::Chars && vocab.count(WordId::UNK) == 0;
        self.unknown = reads.then(|| self.unknown_share(vocab)).flatten();
        self
    }

    fn unknown_share(&self, vocab: &Vocab) -> Option<UnknownShare> {
        let (slot, cluster) = (self.slot(WordId::UNK)?, self.cluster(WordId::UNK)?);
        let counts = self.slots(cluster).map(|slot| vocab.count(self.words[slot]));
        Some(UnknownShare::new(slot, counts))
    }

    /// m: the number of clusters.
    pub(crate) fn n_clusters(&self) -> usize {
        self.begins.len() - 1
    }

    /// Z = m·k: the number of states.
    pub(crate) fn n_states(&self) -> usize {
        self.k * self.n_clusters()
    }

    /// The number of words that can be emitted.
    pub(crate) fn n_slots(&self) -> usize {
        self.words.len()
    }

    /// The cluster of a word, if it can be emitted.
    pub(crate) fn cluster(&self, word: WordId) -> Option<usize> {
        let cluster = self.cluster_of[word.index()];
        (cluster != NO_CLUSTER).then_some(cluster as usize)
    }

    /// The slot of a word, if it can be emitted.
    pub(crate) fn slot(&self, word: WordId) -> Option<usize> {
        let slot = self.slot_of[word.index()];
        (slot != NO_SLOT).then_some(slot as usize)
    }

    /// Whether a state of the cluster of `slot` may emit it.
    pub(crate) fn allows(&self, slot: usize, state: usize) -> bool {
        let lists = self.lists.as_ref();
        lists.is_none_or(|lists| lists.of(slot).binary_search(&(state as u32)).is_ok())
    }

    /// The number of states that may emit each word.
    pub(crate) fn states_per_word(&self) -> usize {
        self.lists.as_ref().map_or(self.k, |lists| lists.n)
    }

    /// Selects the entries of the states that may emit `slot` from the entries of its whole cluster.
    pub(crate) fn pick<'a, T: Copy>(&self, slot: usize, of_cluster: &'a [T]) -> Cow<'a, [T]> {
        match &self.lists {
            None => Cow::Borrowed(of_cluster),
            Some(lists) => lists.of(slot).iter().map(|&state| of_cluster[state as usize]).collect(),
        }
    }

    /// The state lists, if there are any and they are short.
    pub(crate) fn short_lists(&self) -> Option<&StateLists> {
        self.lists.as_ref().filter(|lists| lists.are_short)
    }

    /// The cluster of every word, [`NO_CLUSTER`] for words that no state emits.
    pub(crate) fn cluster_of(&self) -> &[u32] {
        &self.cluster_of
    }

    /// The word of every slot.
    pub(crate) fn words(&self) -> &[WordId] {
        &self.words
    }

    /// The slots of a cluster.
    pub(crate) fn slots(&self, cluster: usize) -> Range<usize> {
        self.begins[cluster]..self.begins[cluster + 1]
    }

    /// A hash that distinguishes state spaces with high probability.
    pub(crate) fn fingerprint(&self) -> u64 {
        let lists = self.lists.as_ref().map_or(&[][..], |lists| &lists.states);
        latens_model::fingerprint(self.cluster_of.iter().chain(lists).copied())
    }
}
