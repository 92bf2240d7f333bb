//! The checks of the roles of the model.

use latens_corpus::WordId;
use latens_model::{FeatureRows, Params, TokenEncoder, unwatched};
use latens_model_brown::{Brown, BrownParams};
use latens_testkit::zipfian_corpus;

fn brown() -> (Brown, latens_corpus::Corpus) {
    let corpus = zipfian_corpus(200, 300, 1);
    let params = BrownParams { n_clusters: 40, ..BrownParams::default() }.validate().unwrap();
    (Brown::fit(&params, &corpus, &mut unwatched).unwrap(), corpus)
}

#[test]
fn the_model_is_a_valid_token_encoder() {
    let (brown, corpus) = brown();
    latens_testkit::check_token_encoder(&brown, &corpus.sentences);
}

#[test]
fn saving_and_opening_is_the_identity_and_damage_is_detected() {
    let (brown, _) = brown();
    latens_testkit::check_file_round_trip(&brown, Brown::save, Brown::open, |a, b| {
        assert_eq!(a.clusters(), b.clusters());
        assert_eq!(a.n_features(), b.n_features());
    });
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
    let params = BrownParams { n_clusters: 100, ..BrownParams::default() }.validate().unwrap();
    latens_testkit::check_resume(
        |watch| Brown::fit(&params, &corpus, watch),
        |checkpoint, watch| Brown::resume(&params, &corpus, checkpoint, watch),
        |a, b| {
            assert_eq!(a.clusters(), b.clusters());
            assert_eq!(a.facts()["mutual_information"], b.facts()["mutual_information"]);
        },
    );
}
