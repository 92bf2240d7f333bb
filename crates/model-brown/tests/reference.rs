//! The clustering, compared with the reference program `wcluster` by P. Liang (github.com/percyliang/brown-cluster at
//! 4080a44).
//!
//! Its core was compiled with one change: equally frequent words are ordered as here, by the recurrence of their
//! neighbors and then alphabetically. The original order depends on a hash table and an unstable sort. The program
//! read the training split of the embedded corpus, tokenized at whitespace, with `--c` 8, 30 and 100. The expected
//! numbers are its mutual information before the second stage, to 12 digits, and the contents of its file `paths`.

use latens_corpus::embedded::{Split, text};
use latens_corpus::{Corpus, Inputs, Preprocessing, VocabLimits};
use latens_model::Fit;
use latens_model_brown::Brown;
use std::collections::BTreeSet;

fn brown(n_clusters: usize) -> Brown {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("train.txt");
    std::fs::write(&path, text(Split::Train)).unwrap();
    let (preprocessing, limits) = (Preprocessing::default(), VocabLimits::default());
    let corpus = Corpus::read(&Inputs::new([path]), &preprocessing, &limits).unwrap();
    Brown::params().n_clusters(n_clusters).fit(&corpus).unwrap()
}

/// The number of words of each cluster, in descending order.
fn cluster_sizes(brown: &Brown) -> Vec<usize> {
    let mut sizes = vec![0; brown.clusters().n_clusters()];
    brown.clusters().of_word().iter().flatten().for_each(|&cluster| sizes[cluster as usize] += 1);
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    sizes
}

fn path_lengths(brown: &Brown) -> Vec<usize> {
    let mut lengths: Vec<usize> = brown.clusters().paths().iter().map(String::len).collect();
    lengths.sort_unstable();
    lengths
}

#[test]
fn mutual_information_agrees_with_the_reference_program() {
    for (n_clusters, expected) in [(8, 0.802096521782), (30, 1.366530648675), (100, 2.203406679047)]
    {
        let found = brown(n_clusters).facts()["mutual_information"].as_f64().unwrap();
        assert!((found - expected).abs() < 2e-12, "{n_clusters}: {found} {expected}");
    }
}

#[test]
fn clusters_agree_with_the_reference_program() {
    let brown = brown(8);
    assert_eq!(cluster_sizes(&brown), [2411, 2164, 714, 538, 424, 389, 300, 183]);
    assert_eq!(path_lengths(&brown), [1, 2, 4, 4, 5, 5, 5, 5]);
    // The 48 most frequent words.
    let expected = [
        "of in on for with at from as by into In",
        "the a an your his every its",
        "to that is was are can",
        "it one her two them each",
        "I you had she so has he they",
        "and or than but before",
        "The A will",
        "first be",
    ];
    let mut clusters = BTreeSet::new();
    for words in expected {
        let cluster = |word| brown.cluster(word).unwrap();
        let found: BTreeSet<u32> = words.split(' ').map(cluster).collect();
        assert_eq!(found.len(), 1, "{words}");
        clusters.extend(found);
    }
    assert_eq!(clusters.len(), 8);
}

#[test]
fn sizes_and_path_lengths_of_30_clusters_agree_with_the_reference_program() {
    let brown = brown(30);
    let sizes = [
        1001, 889, 887, 458, 399, 302, 258, 243, 223, 217, 207, 199, 148, 144, 138, 138, 136, 136,
        128, 119, 96, 93, 89, 84, 79, 69, 67, 59, 59, 58,
    ];
    assert_eq!(cluster_sizes(&brown), sizes);
    let lengths =
        [2, 3, 3, 3, 4, 4, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 7, 8, 8, 8, 8, 9, 9, 9, 9, 9, 9, 9, 9];
    assert_eq!(path_lengths(&brown), lengths);
}
