//! The checks of the roles of the model.

use latens_corpus::WordId;
use latens_model::{Device, FeatureRows, Fit, FitError, Model, TokenEncoder};
use latens_model_brown::Brown;
use latens_testkit::{two_class_corpus, zipfian_corpus};
use std::path::Path;

fn brown() -> (Brown, latens_corpus::Corpus) {
    let corpus = zipfian_corpus(200, 300, 1);
    (Brown::params().n_clusters(40).fit(&corpus).unwrap(), corpus)
}

#[test]
fn the_model_is_a_valid_token_encoder() {
    let (brown, corpus) = brown();
    latens_testkit::check_token_encoder(&brown, &corpus.sentences);
}

#[test]
fn saving_and_opening_is_the_identity_and_damage_is_detected() {
    let (brown, _) = brown();
    let same = |a: &Brown, b: &Brown| {
        assert_eq!(a.clusters(), b.clusters());
        assert_eq!(a.n_features(), b.n_features());
    };
    let (save, open) = (|m: &Brown, path: &Path| m.save(path), |path: &Path| Brown::open(path));
    latens_testkit::check_file_round_trip(&brown, save, open, same);
}

#[test]
fn words_share_the_features_of_the_common_prefix_of_their_paths() {
    let (brown, corpus) = brown();
    let clusters = brown.clusters();
    let [a, b] = [WordId(2), WordId(3)];
    let mut rows = FeatureRows::new();
    brown.encode(&[a, b], &mut rows);
    let paths = [a, b].map(|word| clusters.path(clusters.cluster(word).unwrap()));
    let columns = [0, 1].map(|i| rows.row(i).0.to_vec());
    let shared = columns[0].iter().filter(|column| columns[1].contains(column)).count();
    let expected = [4, 6, 10, 20]
        .iter()
        .filter(|&&n| paths[0].get(..n).is_some() && paths[0].get(..n) == paths[1].get(..n));
    assert_eq!(shared, expected.count() + usize::from(paths[0] == paths[1]));
    assert!(corpus.lexicon.vocab.len() > 3);
}

#[test]
fn training_resumes_from_any_checkpoint_and_stops_on_request() {
    let corpus = zipfian_corpus(400, 300, 2);
    let params = || Brown::params().n_clusters(100);
    latens_testkit::check_resume(
        |watch| params().watch(|progress| watch(progress)).fit(&corpus),
        |checkpoint, watch| {
            params().watch(|progress| watch(progress)).checkpoint(checkpoint).fit(&corpus)
        },
        |a, b| {
            assert_eq!(a.clusters(), b.clusters());
            assert_eq!(a.facts()["mutual_information"], b.facts()["mutual_information"]);
        },
    );
}

#[test]
fn clusters_paths_and_words_agree() {
    let (brown, corpus) = brown();
    let vocab = &corpus.lexicon.vocab;
    let mut n_words = 0;
    for cluster in 0..brown.n_clusters() as u32 {
        let words = brown.words(cluster);
        n_words += words.len();
        assert!(words.iter().all(|word| brown.cluster(word) == Some(cluster)));
        let path = brown.clusters().path(cluster);
        assert!(words.iter().all(|word| brown.path(word) == Some(path)));
        let counts: Vec<u64> = words.iter().map(|word| vocab.count(vocab.id(word))).collect();
        assert!(counts.is_sorted_by(|a, b| a >= b), "{counts:?}");
    }
    assert_eq!(n_words, brown.clusters().of_word().iter().flatten().count());
    assert_eq!((brown.cluster("not a word"), brown.path("<eos>")), (None, None));
    assert!(brown.words(brown.n_clusters() as u32).is_empty());
}

#[test]
fn the_model_offers_its_only_kind_of_features() {
    let (brown, _) = brown();
    assert_eq!((brown.kind(), brown.feature_kinds()), ("brown", vec!["paths"]));
    let encoder = brown.encoder("paths").unwrap();
    assert_eq!(encoder.n_features(), brown.n_features());
    assert!(brown.encoder("vectors").is_none() && brown.as_language_model().is_none());
}

#[test]
fn held_out_text_and_a_gpu_are_rejected() {
    let corpus = two_class_corpus(20, 1);
    let valid = Brown::params().n_clusters(2).valid(&corpus.sentences).fit(&corpus);
    assert!(matches!(valid, Err(FitError::Params(_))));
    let cuda = Brown::params().n_clusters(2).device(Device::Cuda).fit(&corpus);
    assert!(matches!(cuda, Err(FitError::Device { .. })));
}
