//! The greedy algorithm, compared with a direct implementation of its definition that tries all mergers.

use latens_corpus::{Corpus, WordId};
use latens_model::{Fit, Params};
use latens_model_brown::Brown;
use latens_testkit::{two_class_corpus, zipfian_corpus};
use std::cmp::Reverse;
use std::collections::BTreeMap;

mod common;
use common::{information, stream};

/// The number of pairs of occurrences of a word with the same next word, plus those with the same previous word.
fn recurrence(text: &[WordId], word: WordId) -> usize {
    let same = |at: &dyn Fn(&[WordId]) -> Option<WordId>| -> usize {
        let found: Vec<WordId> = text.windows(2).filter_map(at).collect();
        found.iter().map(|v| found.iter().filter(|w| v == *w).count()).sum()
    };
    same(&|pair| (pair[0] == word).then_some(pair[1]))
        + same(&|pair| (pair[1] == word).then_some(pair[0]))
}

/// The algorithm of the paper with every loss computed from scratch, and equally frequent words ordered by the
/// recurrence of their neighbors.
fn by_definition(corpus: &Corpus, n_clusters: usize) -> (Vec<Vec<WordId>>, f64) {
    let text = stream(corpus);
    let mut counts: BTreeMap<WordId, usize> = BTreeMap::new();
    text.iter().for_each(|&word| *counts.entry(word).or_default() += 1);
    let mut words: Vec<WordId> = counts.keys().copied().collect();
    words.sort_by_key(|&word| (Reverse(counts[&word]), Reverse(recurrence(&text, word)), word));
    let mut clusters: Vec<Vec<WordId>> = Vec::new();
    for word in words {
        clusters.push(vec![word]);
        if clusters.len() > n_clusters {
            let mut best = (f64::NEG_INFINITY, Vec::new());
            for v in 0..clusters.len() {
                for w in v + 1..clusters.len() {
                    let mut merged = clusters.clone();
                    let moved = merged.remove(w);
                    merged[v].extend(moved);
                    let information = information(&text, &merged);
                    if information > best.0 {
                        best = (information, merged);
                    }
                }
            }
            clusters = best.1;
        }
    }
    let information = information(&text, &clusters);
    (clusters, information)
}

#[test]
fn clusters_agree_with_the_definition() {
    for (corpus, n_clusters) in [
        (zipfian_corpus(14, 60, 1), 4),
        (zipfian_corpus(14, 60, 2), 6),
        (zipfian_corpus(14, 60, 3), 1),
        (two_class_corpus(40, 5), 5),
    ] {
        let (expected, information) = by_definition(&corpus, n_clusters);
        let brown = Brown::params().n_clusters(n_clusters).fit(&corpus).unwrap();
        let found = brown.facts()["mutual_information"].as_f64().unwrap();
        assert!((found - information).abs() < 1e-9, "{found} {information}");
        for cluster in expected {
            let numbers: Vec<_> =
                cluster.iter().map(|&word| brown.clusters().cluster(word)).collect();
            assert!(
                numbers[0].is_some() && numbers.iter().all(|&n| n == numbers[0]),
                "{cluster:?}"
            );
        }
    }
}

#[test]
fn more_clusters_than_words_are_rejected() {
    let corpus = zipfian_corpus(10, 20, 1);
    let error = Brown::params().n_clusters(1000).fit(&corpus).unwrap_err().to_string();
    assert!(error.contains("`n_clusters` must be at most"), "{error}");
    assert!(Brown::params().n_clusters(0).validate().is_err());
}
