//! The exchange algorithm, compared with its definition, and its guarantees.

use latens_corpus::{Corpus, WordId};
use latens_model::{Fit, FitError, Progress};
use latens_model_brown::{Algorithm, Brown, BrownParams};
use latens_testkit::{two_class_corpus, zipfian_corpus};
use std::ops::ControlFlow;

mod common;
use common::{information, stream};

fn params(n_clusters: usize, n_iterations: usize) -> BrownParams {
    let params = Brown::params().algorithm(Algorithm::Exchange);
    params.n_clusters(n_clusters).n_iterations(n_iterations)
}

/// The mutual information after each iteration, and the model.
fn watched(params: BrownParams, corpus: &Corpus) -> (Vec<f64>, Brown) {
    let mut seen = Vec::new();
    let watch = |progress: &Progress<'_>| {
        seen.extend(progress.metrics.iter().map(|&(_, value)| value));
        ControlFlow::Continue(())
    };
    let brown = params.watch(watch).fit(corpus).unwrap();
    (seen, brown)
}

fn members(brown: &Brown) -> Vec<Vec<WordId>> {
    let mut members = vec![Vec::new(); brown.clusters().n_clusters()];
    for (word, cluster) in brown.clusters().of_word().iter().enumerate() {
        if let Some(cluster) = cluster {
            members[*cluster as usize].push(WordId::from(word));
        }
    }
    members
}

#[test]
fn no_single_move_improves_the_final_clusters() {
    for (corpus, n_clusters) in [
        (zipfian_corpus(14, 60, 1), 4),
        (zipfian_corpus(14, 60, 2), 6),
        (two_class_corpus(40, 5), 5),
        (two_class_corpus(40, 6), 1),
    ] {
        let (seen, brown) = watched(params(n_clusters, 100), &corpus);
        assert!(seen.len() < 100, "the algorithm did not converge");
        let (text, clusters) = (stream(&corpus), members(&brown));
        let reached = information(&text, &clusters);
        assert!((seen.last().unwrap() - reached).abs() < 1e-9);
        assert!((brown.facts()["mutual_information"].as_f64().unwrap() - reached).abs() < 1e-9);
        for from in (0..n_clusters).filter(|&cluster| clusters[cluster].len() > 1) {
            for (i, to) in
                (0..clusters[from].len()).flat_map(|i| (0..n_clusters).map(move |to| (i, to)))
            {
                let mut moved = clusters.clone();
                let word = moved[from].remove(i);
                moved[to].push(word);
                assert!(information(&text, &moved) <= reached + 1e-9);
            }
        }
    }
}

#[test]
fn mutual_information_never_decreases() {
    let corpus = zipfian_corpus(1_000, 2_000, 1);
    let (seen, _) = watched(params(30, 8), &corpus);
    assert_eq!(seen.len(), 8);
    assert!(seen.windows(2).all(|pair| pair[1] >= pair[0]), "{seen:?}");
}

#[test]
fn the_classes_of_the_generator_are_recovered() {
    let corpus = two_class_corpus(2_000, 1);
    let (_, brown) = watched(params(2, 20), &corpus);
    let vocab = &corpus.lexicon.vocab;
    let cluster = |word: &str| brown.clusters().cluster(vocab.id(word)).unwrap();
    for i in 0..10 {
        assert_eq!(cluster(&format!("a{i}")), cluster("a0"));
        assert_eq!(cluster(&format!("b{i}")), cluster("b0"));
    }
    assert_ne!(cluster("a0"), cluster("b0"));
}

#[test]
fn training_resumes_from_any_checkpoint_and_stops_on_request() {
    let corpus = zipfian_corpus(1_000, 1_000, 3);
    let params = || params(20, 3);
    latens_testkit::check_resume(
        |watch| params().watch(|progress| watch(progress)).fit(&corpus),
        |checkpoint, watch| {
            params().watch(|progress| watch(progress)).checkpoint(checkpoint).fit(&corpus)
        },
        |a, b| assert_eq!(a.clusters(), b.clusters()),
    );
}

#[test]
fn a_finished_run_can_be_resumed_with_more_iterations() {
    let corpus = zipfian_corpus(1_000, 1_000, 3);
    let mut last = None;
    let watch = |progress: &Progress<'_>| {
        last = progress.checkpoint.map(|checkpoint| checkpoint().unwrap()).or(last.take());
        ControlFlow::Continue(())
    };
    params(20, 1).watch(watch).fit(&corpus).unwrap();
    let checkpoint = last.unwrap();
    let longer = params(20, 3).builder().checkpoint(&checkpoint).fit(&corpus).unwrap();
    let uninterrupted = params(20, 3).fit(&corpus).unwrap();
    assert_eq!(longer.clusters(), uninterrupted.clusters());
    let rejected = params(21, 3).builder().checkpoint(&checkpoint).fit(&corpus);
    assert!(matches!(rejected, Err(FitError::Checkpoint(_))));
}
