//! The clustering against the classic program, `wcluster` of P. Liang (github.com/percyliang/brown-cluster
//! at 4080a44).
//!
//! Its core was compiled with one change: words that are equally frequent come by their letters, as ours do,
//! and not as its hash table and its unstable sort leave them. It read the training part of the embedded
//! corpus, cut at blanks, with `--c` 8, 30 and 100. Numbers are the mutual information that it had before
//! its second stage, to 12 digits, and what its file `paths` says.

use latens_corpus::embedded::{Split, text};
use latens_corpus::{Corpus, Inputs, Preprocessing, VocabLimits};
use latens_model::{Params, unwatched};
use latens_model_brown::{Brown, BrownParams};
use std::collections::BTreeSet;

fn brown(n_clusters: usize) -> Brown {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("train.txt");
    std::fs::write(&path, text(Split::Train)).unwrap();
    let (preprocessing, limits) = (Preprocessing::default(), VocabLimits::default());
    let corpus = Corpus::read(&Inputs::new([path]), &preprocessing, &limits).unwrap();
    let params = BrownParams { n_clusters, ..BrownParams::default() }.validate().unwrap();
    Brown::fit(&params, &corpus, &mut unwatched).unwrap()
}

/// How many words each cluster has, in descending order.
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
fn mutual_information_is_that_of_the_classic_program() {
    for (n_clusters, expected) in [(8, 0.815998180247), (30, 1.378160743430), (100, 2.209111970690)]
    {
        let found = brown(n_clusters).facts()["mutual_information"].as_f64().unwrap();
        assert!((found - expected).abs() < 2e-12, "{n_clusters}: {found} {expected}");
    }
}

#[test]
fn clusters_are_those_of_the_classic_program() {
    let brown = brown(8);
    assert_eq!(cluster_sizes(&brown), [2360, 1822, 769, 761, 463, 431, 304, 213]);
    assert_eq!(path_lengths(&brown), [1, 2, 4, 4, 4, 5, 6, 6]);
    // The 48 most frequent words.
    let expected = [
        "of in on for with at from as by into In",
        "the a an your his every its",
        "to that is was so has",
        "it one her two them each",
        "I you had she he they",
        "and or than but before",
        "The A are will can",
        "first be",
    ];
    let mut clusters = BTreeSet::new();
    for words in expected {
        let cluster = |word| brown.clusters().cluster(brown.lexicon().vocab.id(word)).unwrap();
        let found: BTreeSet<u32> = words.split(' ').map(cluster).collect();
        assert_eq!(found.len(), 1, "{words}");
        clusters.extend(found);
    }
    assert_eq!(clusters.len(), 8);
}

#[test]
fn many_clusters_have_the_sizes_of_the_classic_program() {
    let brown = brown(30);
    let sizes = [
        866, 792, 783, 554, 450, 303, 275, 269, 267, 219, 199, 179, 167, 164, 147, 146, 139, 131,
        126, 109, 95, 90, 87, 87, 87, 86, 81, 81, 79, 65,
    ];
    assert_eq!(cluster_sizes(&brown), sizes);
    let lengths =
        [2, 3, 3, 4, 4, 4, 4, 5, 5, 6, 6, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 8, 8, 8, 8, 8];
    assert_eq!(path_lengths(&brown), lengths);
}
