//! Which states may emit which words.

use crate::fitted::unknown_words::Unknown;
use crate::params::{Constraint, HmmParams, WordVectors};
use crate::space::kept_lists::KeptLists;
use crate::tables::probability_tables::Kept;
use latens_corpus::{Vocab, WordId};
use latens_math::Rng;
use latens_model::{FitError, ParamError, WordClusters, check_that};
use std::borrow::Cow;

/// The clusters of words, and the states of each: those of cluster c are c·k to c·k + k − 1.
///
/// Without clusters, all words are in one. The words that can be emitted have *slots*: numbers in the
/// order of clusters, then of ids, so that the words of a cluster lie side by side in all tables.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Support {
    /// k: how many states each cluster has.
    pub(crate) k: usize,
    /// The cluster of each word; `NONE` for words that were never seen.
    cluster_of: Vec<u32>,
    slot_of: Vec<u32>,
    words: Vec<WordId>,
    /// Where each cluster begins among the slots, and where the last one ends.
    begins: Vec<usize>,
    /// For each slot the states that may emit it, if not all of its cluster: ascending, as many for each.
    pub(crate) lists: Option<Lists>,
    /// What the states of `<unk>` leave to words that come later.
    pub(crate) unknown: Option<Unknown>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lists {
    pub(crate) n: usize,
    pub(crate) states: Vec<u32>,
    /// Whether they are so short that it pays to go through them, and not through all states.
    pub(crate) are_short: bool,
}

/// Lists of at most this part of all states are short. Longer ones are rows of all states with zeros: general
/// products with whole tables do so many more multiplications in a second.
const SHORT: usize = 8;

pub(crate) const NONE: u32 = u32::MAX;

impl Support {
    /// Clusters as they are in a model: one number a word, `NONE` for one that is never emitted.
    pub(crate) fn new(k: usize, n_clusters: usize, cluster_of: Vec<u32>) -> Support {
        let mut members = vec![Vec::new(); n_clusters];
        for (word, &cluster) in cluster_of.iter().enumerate().filter(|(_, c)| **c != NONE) {
            members[cluster as usize].push(WordId::from(word));
        }
        let mut begins = vec![0];
        for words in &members {
            begins.push(begins[begins.len() - 1] + words.len());
        }
        let words = members.concat();
        let mut slot_of = vec![NONE; cluster_of.len()];
        for (slot, word) in words.iter().enumerate() {
            slot_of[word.index()] = slot as u32;
        }
        Support { k, cluster_of, slot_of, words, begins, lists: None, unknown: None }
    }

    /// What the parameters ask for. Words that were never seen are emitted by no state, but `<unk>` is where
    /// words are read off letters: its states emit words that come later.
    pub(crate) fn of_params(
        params: &HmmParams,
        vocab: &Vocab,
        clusters: Option<&WordClusters>,
    ) -> Result<Support, FitError> {
        let all_in_one = || {
            let words = (0..vocab.len()).map(WordId::from);
            words.map(|word| if can_come(params, vocab, word) { 0 } else { NONE }).collect()
        };
        match params.constraint {
            Constraint::None => {
                Ok(Support::new(params.n_states, 1, all_in_one()).with_unknown(params, vocab))
            }
            Constraint::Brown => {
                let clusters = clusters.ok_or_else(|| {
                    FitError::not_enough_data("clusters of words", "none were given")
                })?;
                let cluster_of = of_clusters(params, vocab, clusters)?;
                let support = Support::new(params.states_per_word(), params.n_clusters, cluster_of);
                Ok(support.with_unknown(params, vocab))
            }
            Constraint::Uniform => {
                let mut support = Support::new(params.n_states, 1, all_in_one());
                let lists = Lists::draw(params, support.n_slots());
                lists.check(params)?;
                support.lists = Some(lists);
                Ok(support.with_unknown(params, vocab))
            }
        }
    }

    pub(crate) fn n_clusters(&self) -> usize {
        self.begins.len() - 1
    }

    pub(crate) fn n_states(&self) -> usize {
        self.k * self.n_clusters()
    }

    pub(crate) fn n_slots(&self) -> usize {
        self.words.len()
    }

    /// The cluster of a word, if the word can be emitted.
    pub(crate) fn cluster(&self, word: WordId) -> Option<usize> {
        let cluster = self.cluster_of[word.index()];
        (cluster != NONE).then_some(cluster as usize)
    }

    /// The slot of a word, if the word can be emitted.
    pub(crate) fn slot(&self, word: WordId) -> Option<usize> {
        let slot = self.slot_of[word.index()];
        (slot != NONE).then_some(slot as usize)
    }

    /// Whether one of the states of a slot's cluster may emit it.
    pub(crate) fn allows(&self, slot: usize, state: usize) -> bool {
        let lists = self.lists.as_ref();
        lists.is_none_or(|lists| lists.of(slot).binary_search(&(state as u32)).is_ok())
    }

    /// How many states may emit a word.
    pub(crate) fn states_per_word(&self) -> usize {
        self.lists.as_ref().map_or(self.k, |lists| lists.n)
    }

    /// Of numbers of all states of a slot's cluster those of the states that may emit it.
    pub(crate) fn pick<'a, T: Copy>(&self, slot: usize, of_cluster: &'a [T]) -> Cow<'a, [T]> {
        match &self.lists {
            None => Cow::Borrowed(of_cluster),
            Some(lists) => lists.of(slot).iter().map(|&state| of_cluster[state as usize]).collect(),
        }
    }

    /// Lists of states, long ones too, as far as words have such.
    pub(crate) fn all_lists(&self) -> Option<KeptLists> {
        let lists = self.lists.as_ref()?;
        Some(KeptLists::new(lists, self.n_states(), &Kept::all(self)))
    }

    /// Lists of states that are worth going through, if words have such.
    pub(crate) fn short_lists(&self) -> Option<&Lists> {
        self.lists.as_ref().filter(|lists| lists.are_short)
    }

    /// What is left of short lists of states, if words have such.
    pub(crate) fn kept_lists(&self, kept: &Kept) -> Option<KeptLists> {
        let lists = self.short_lists()?;
        Some(KeptLists::new(lists, self.n_states(), kept))
    }

    /// The cluster of each word, `NONE` for one that is never emitted.
    pub(crate) fn cluster_of(&self) -> &[u32] {
        &self.cluster_of
    }

    /// A number that two supports share if, and in practice only if, they are the same.
    pub(crate) fn fingerprint(&self) -> u64 {
        let lists = self.lists.as_ref().map_or(&[][..], |lists| &lists.states);
        latens_model::fingerprint(self.cluster_of.iter().chain(lists).copied())
    }

    /// The word of each slot.
    pub(crate) fn words(&self) -> &[WordId] {
        &self.words
    }

    /// The slots of a cluster.
    pub(crate) fn slots(&self, cluster: usize) -> std::ops::Range<usize> {
        self.begins[cluster]..self.begins[cluster + 1]
    }
}

/// Whether a state emits a word.
fn can_come(params: &HmmParams, vocab: &Vocab, word: WordId) -> bool {
    let is_placeholder = word == WordId::UNK && params.word_vectors == WordVectors::Chars;
    is_placeholder || vocab.count(word) > 0
}

/// The cluster of each word that was seen. `<eos>`, which stands in no list of clusters, joins the cluster
/// with the fewest tokens, and so does `<unk>` if it is in no cluster. Where words are read off letters, those
/// that are in no cluster join that of `<unk>`.
fn of_clusters(
    params: &HmmParams,
    vocab: &Vocab,
    clusters: &WordClusters,
) -> Result<Vec<u32>, FitError> {
    if clusters.n_clusters() != params.n_clusters {
        return Err(FitError::Params(ParamError {
            name: "n_clusters",
            must: format!("{}, the number of clusters given", clusters.n_clusters()),
            got: params.n_clusters.to_string(),
        }));
    }
    let mut n_tokens = vec![0u64; clusters.n_clusters()];
    let mut lacking = Vec::new();
    for word in (0..vocab.len()).map(WordId::from) {
        match clusters.cluster(word) {
            Some(cluster) => n_tokens[cluster as usize] += vocab.count(word),
            None if vocab.count(word) > 0 && word > WordId::EOS => lacking.push(word),
            None => {}
        }
    }
    let smallest = (0..n_tokens.len()).min_by_key(|&cluster| n_tokens[cluster]).unwrap_or(0) as u32;
    let of_unk = clusters.cluster(WordId::UNK).unwrap_or(smallest);
    if let Some(&word) = lacking.first()
        && params.word_vectors == WordVectors::Words
    {
        let needs = "a cluster for every word of the text".to_owned();
        let has = format!("none for {} words, `{}` among them", lacking.len(), vocab.word(word));
        return Err(FitError::NotEnoughData { needs, has });
    }
    let cluster_of = (0..vocab.len()).map(WordId::from).map(|word| match clusters.cluster(word) {
        _ if !can_come(params, vocab, word) => NONE,
        Some(cluster) => cluster,
        None if word == WordId::EOS => smallest,
        None => of_unk,
    });
    let cluster_of: Vec<u32> = cluster_of.collect();
    // States that emit nothing would swallow probability.
    let mut is_empty = vec![true; params.n_clusters];
    let seen = cluster_of.iter().filter(|cluster| **cluster != NONE);
    seen.for_each(|&cluster| is_empty[cluster as usize] = false);
    let n_empty = is_empty.iter().filter(|empty| **empty).count();
    if n_empty > 0 {
        let has = format!("{n_empty} of {} without any", params.n_clusters);
        return Err(FitError::not_enough_data("words in every cluster", has));
    }
    Ok(cluster_of)
}

impl Lists {
    /// A subset of the states for each word, all subsets of this size alike.
    pub(crate) fn draw(params: &HmmParams, n_slots: usize) -> Lists {
        let n = params.states_per_word();
        let mut states = Vec::with_capacity(n * n_slots);
        for slot in 0..n_slots {
            let mut rng = Rng::stream(params.seed ^ LISTS, slot as u64);
            states.extend(draw_subset(params.n_states, n, &mut rng));
        }
        Lists::new(n, params.n_states, states)
    }

    /// Lists of `n` of the states below `n_states` each.
    pub(crate) fn new(n: usize, n_states: usize, states: Vec<u32>) -> Lists {
        Lists { n, states, are_short: n * SHORT <= n_states }
    }

    /// Refuses states that emit nothing: they would swallow probability.
    fn check(&self, params: &HmmParams) -> Result<(), ParamError> {
        let mut emits = vec![false; params.n_states];
        self.states.iter().for_each(|&state| emits[state as usize] = true);
        let n_idle = emits.iter().filter(|emits| !**emits).count();
        let must = format!("so few that every one is drawn for a word ({n_idle} are for none)");
        check_that(n_idle == 0, "n_states", must, params.n_states)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.states.len() / self.n
    }

    pub(crate) fn of(&self, slot: usize) -> &[u32] {
        &self.states[slot * self.n..(slot + 1) * self.n]
    }
}

/// Tells the generators of subsets from other generators of the same seed.
const LISTS: u64 = 0x6c69_7374_7300_0000;

/// `n` of the numbers below `total`, in ascending order, all subsets alike (Floyd's algorithm keeps only
/// the subset in memory, but a partial shuffle is simpler, and `total` is small).
pub(crate) fn draw_subset(total: usize, n: usize, rng: &mut Rng) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..total as u32).collect();
    for i in 0..n {
        let other = i + (rng.uniform() * (total - i) as f64) as usize;
        numbers.swap(i, other);
    }
    numbers.truncate(n);
    numbers.sort_unstable();
    numbers
}
