//! Assigns every word to one of the clusters that share the states.

use crate::params::{HmmParams, WordEmbedding};
use latens_corpus::{Corpus, Vocab, VocabLimits, WordId};
use latens_model::{FitError, ParamError, WordClusters};
use latens_model_brown::{Algorithm, Brown, BrownParams};
use std::borrow::Cow;

/// The cluster of a word that no state emits.
pub(crate) const NO_CLUSTER: u32 = u32::MAX;

/// Returns the text to learn word clusters from, for a model of `corpus`.
///
/// For a model with character-based word vectors, this text replaces words with a count of 1 by `<unk>`.
/// They then share one cluster, whose states learn how rare words are spelled and emit unknown words later.
/// For other models it is the corpus itself.
pub fn text_to_cluster<'a>(params: &HmmParams, corpus: &'a Corpus) -> Cow<'a, Corpus> {
    match params.word_vectors {
        WordEmbedding::Words => Cow::Borrowed(corpus),
        WordEmbedding::Chars => {
            let limits = corpus.lexicon.limits;
            let min_count = limits.min_count.max(2);
            Cow::Owned(corpus.limited(&VocabLimits { min_count, ..limits }))
        }
    }
}

/// How word clusters are learned: by exchange, which gives a lower perplexity than the greedy algorithm.
pub(crate) fn clustering(params: &HmmParams) -> BrownParams {
    Brown::params().n_clusters(params.n_clusters).algorithm(Algorithm::Exchange)
}

/// Puts all words that are emitted into one cluster.
pub(crate) fn one_cluster(params: &HmmParams, vocab: &Vocab) -> Vec<u32> {
    let words = (0..vocab.len()).map(WordId::from);
    words.map(|word| if is_emitted(params, vocab, word) { 0 } else { NO_CLUSTER }).collect()
}

/// Returns the cluster of every word, [`NO_CLUSTER`] for words that no state emits.
///
/// `<eos>`, which word clusters do not contain, joins the cluster with the fewest tokens, and so does `<unk>`
/// if it has no cluster. In a model with character-based word vectors, other words without a cluster join the
/// cluster of `<unk>`; in any other model they are an error.
pub(crate) fn assign_clusters(
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
        && params.word_vectors == WordEmbedding::Words
    {
        let needs = "a cluster for every word of the text".to_owned();
        let has = format!("none for {} words, among them `{}`", lacking.len(), vocab.word(word));
        return Err(FitError::NotEnoughData { needs, has });
    }
    let cluster_of = (0..vocab.len()).map(WordId::from).map(|word| match clusters.cluster(word) {
        _ if !is_emitted(params, vocab, word) => NO_CLUSTER,
        Some(cluster) => cluster,
        None if word == WordId::EOS => smallest,
        None => of_unk,
    });
    let cluster_of: Vec<u32> = cluster_of.collect();
    check_all_used(&cluster_of, params.n_clusters)?;
    Ok(cluster_of)
}

/// Whether any state emits a word: it has been seen, or it is the `<unk>` of a model that reads characters,
/// whose states emit unknown words.
fn is_emitted(params: &HmmParams, vocab: &Vocab, word: WordId) -> bool {
    let is_placeholder = word == WordId::UNK && params.word_vectors == WordEmbedding::Chars;
    is_placeholder || vocab.count(word) > 0
}

/// Rejects clusters without words: transitions into their states would lose probability mass.
fn check_all_used(cluster_of: &[u32], n_clusters: usize) -> Result<(), FitError> {
    let mut is_empty = vec![true; n_clusters];
    let used = cluster_of.iter().filter(|cluster| **cluster != NO_CLUSTER);
    used.for_each(|&cluster| is_empty[cluster as usize] = false);
    let n_empty = is_empty.iter().filter(|empty| **empty).count();
    if n_empty > 0 {
        let has = format!("{n_empty} of {n_clusters} clusters without words");
        return Err(FitError::not_enough_data("words in every cluster", has));
    }
    Ok(())
}
