//! The mutual information of a clustering, computed from the text.

use latens_corpus::{Corpus, WordId};
use std::collections::BTreeMap;

/// The words of a corpus as one stream, without ends of sentences.
pub(crate) fn stream(corpus: &Corpus) -> Vec<WordId> {
    corpus.sentences.tokens().iter().copied().filter(|&word| word != WordId::EOS).collect()
}

/// The mutual information of adjacent clusters in bits, over words that have a cluster; probabilities are relative to
/// all tokens.
pub(crate) fn information(words: &[WordId], clusters: &[Vec<WordId>]) -> f64 {
    let of = |word: WordId| clusters.iter().position(|cluster| cluster.contains(&word));
    let total = words.len() as f64;
    let mut frequency: BTreeMap<usize, f64> = BTreeMap::new();
    let mut pairs: BTreeMap<(usize, usize), f64> = BTreeMap::new();
    for &word in words {
        if let Some(cluster) = of(word) {
            *frequency.entry(cluster).or_default() += 1.0;
        }
    }
    for pair in words.windows(2) {
        if let (Some(s), Some(t)) = (of(pair[0]), of(pair[1])) {
            *pairs.entry((s, t)).or_default() += 1.0;
        }
    }
    let term = |(&(s, t), &n): (&(usize, usize), &f64)| {
        let p = n / (total - 1.0);
        p * (p / (frequency[&s] / total * frequency[&t] / total)).log2()
    };
    pairs.iter().map(term).sum()
}
