//! Checkpoints restore the trainer state, and only for matching parameters and data.

use crate::toy;
use crate::toy::{ToyParams, lexicon, params, vocab};
use latens_corpus::{Sentences, Vocab, WordId};
use latens_math::Rng;
use latens_model::{
    Checkpoint, CheckpointError, FileError, FitError, ModelFile, Params, SharedRows,
    data_fingerprint, inspect,
};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::sync::Arc;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct State {
    iteration: usize,
    log_prob: f64,
    rng: Rng,
}

const DATA: u64 = u64::MAX - 1;

fn state() -> State {
    let mut rng = Rng::new(1);
    rng.uniform();
    State { iteration: 7, log_prob: -toy::RATE, rng }
}

fn checkpoint() -> Checkpoint {
    Checkpoint::new("toy", &params().validate().unwrap(), DATA, &state())
        .with_array("weights", &[2, 1], &[f32::NAN, -0.0])
        .with_array("best", &[], &[f64::NEG_INFINITY])
}

fn saved_and_opened(checkpoint: &Checkpoint) -> Checkpoint {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint");
    checkpoint.save(&path).unwrap();
    Checkpoint::open(&path).unwrap()
}

#[test]
fn state_and_arrays_round_trip_bit_for_bit() {
    let fresh = checkpoint();
    let once = saved_and_opened(&fresh);
    let twice = saved_and_opened(&once);
    for checkpoint in [fresh, once, twice] {
        assert_eq!(checkpoint.of(), "toy");
        assert_eq!(checkpoint.state::<State>().unwrap(), state());
        let weights = checkpoint.array::<f32>("weights", &[2, 1]).unwrap();
        assert_eq!(weights[0].to_bits(), f32::NAN.to_bits());
        assert_eq!(weights[1].to_bits(), (-0f32).to_bits());
        assert_eq!(checkpoint.array::<f64>("best", &[]).unwrap(), [f64::NEG_INFINITY]);
    }
}

/// Rows of two numbers, with an unrelated number between rows.
struct Spaced(Vec<f32>);

impl SharedRows<f32> for Spaced {
    fn row(&self, row: usize) -> &[f32] {
        &self.0[3 * row..][..2]
    }
}

#[test]
fn shared_rows_are_stored_like_a_copy() {
    let rows = Arc::new(Spaced(vec![1.0, 2.0, 9.0, 3.0, 4.0, 9.0, 5.0, 6.0]));
    let shared = checkpoint().with_shared_rows("rows", &[3, 2], Arc::clone(&rows));
    assert_eq!(Arc::strong_count(&rows), 2, "the rows must not be copied");
    let copied = checkpoint().with_array("rows", &[3, 2], &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let bytes = |checkpoint: &Checkpoint| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("checkpoint");
        checkpoint.save(&path).unwrap();
        std::fs::read(&path).unwrap()
    };
    assert_eq!(bytes(&shared), bytes(&copied));
    for checkpoint in [saved_and_opened(&shared), shared] {
        let found = checkpoint.array::<f32>("rows", &[3, 2]).unwrap();
        assert_eq!(found, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    }
}

#[test]
#[should_panic(expected = "`rows` of shape [2, 3] has 4 values")]
fn shared_rows_must_match_their_shape() {
    let rows = Arc::new(Spaced(vec![1.0, 2.0, 9.0, 3.0, 4.0]));
    let _ = checkpoint().with_shared_rows("rows", &[2, 3], rows);
}

#[test]
fn a_shared_array_is_stored_like_a_copy() {
    let values = Arc::new(vec![1u32, 2, 3, 4, 5, 6]);
    let shared = checkpoint().with_shared_array("counts", &[2, 3], Arc::clone(&values));
    assert_eq!(Arc::strong_count(&values), 2, "the array must not be copied");
    for checkpoint in [saved_and_opened(&shared), shared] {
        assert_eq!(checkpoint.array::<u32>("counts", &[2, 3]).unwrap(), *values);
    }
}

fn refusal(of: &str, params: ToyParams, data: u64) -> Option<String> {
    let params = params.validate().unwrap();
    let fits = saved_and_opened(&checkpoint()).check_fits(of, &params, data, &["n_iterations"]);
    fits.err().map(|error| error.to_string())
}

#[test]
fn the_same_parameters_and_data_are_accepted() {
    assert_eq!(refusal("toy", params(), DATA), None);
    assert_eq!(refusal("toy", ToyParams { n_iterations: 99, ..params() }, DATA), None);
}

#[test]
fn different_parameters_are_rejected_by_name_with_both_values() {
    let expected = "it was created with `n_states` = 3, but now `n_states` = 4";
    assert_eq!(refusal("toy", ToyParams { n_states: 4, ..params() }, DATA).unwrap(), expected);
    let nearly = f64::from_bits(toy::RATE.to_bits() + 1);
    let refused = refusal("toy", ToyParams { rate: nearly, ..params() }, DATA).unwrap();
    assert!(refused.contains("`rate` = 0.19844004278856286"), "{refused}");
}

#[test]
fn parameters_missing_on_one_side_are_rejected() {
    #[derive(Default, Serialize)]
    struct Longer {
        n_states: usize,
        rate: f64,
        n_iterations: usize,
        new: bool,
    }
    impl Params for Longer {
        fn check(&self) -> Result<(), latens_model::ParamError> {
            Ok(())
        }
    }
    let longer = Longer { n_states: 3, rate: toy::RATE, n_iterations: 20, new: true };
    let error = checkpoint().check_fits("toy", &longer.validate().unwrap(), DATA, &[]).unwrap_err();
    assert_eq!(error.to_string(), "it was created with `new` = null, but now `new` = true");
}

#[test]
fn different_data_and_models_are_rejected() {
    assert_eq!(refusal("toy", params(), DATA - 1).unwrap(), "it was created from different data");
    let expected = "it belongs to a model of kind `toy`, not `hmm`";
    assert_eq!(refusal("hmm", params(), DATA).unwrap(), expected);
}

#[test]
fn a_mismatched_state_or_array_is_an_error() {
    let checkpoint = saved_and_opened(&checkpoint());
    assert!(matches!(checkpoint.state::<Vec<u8>>(), Err(CheckpointError::BadState(_))));
    let message = |error: CheckpointError| error.to_string();
    assert_eq!(
        checkpoint.array::<f64>("weights", &[2, 1]).map_err(message).unwrap_err(),
        "its array `weights` is F32 [2, 1], expected F64 [2, 1]"
    );
    assert_eq!(
        checkpoint.array::<u8>("absent", &[3]).map_err(message).unwrap_err(),
        "its array `absent` is missing, expected U8 [3]"
    );
}

#[test]
fn a_fit_error_reports_its_cause() {
    let error = FitError::from(CheckpointError::OtherData);
    assert_eq!(error.to_string(), "cannot resume from the checkpoint");
    assert_eq!(error.source().unwrap().to_string(), "it was created from different data");
}

#[test]
fn models_and_checkpoints_are_not_interchangeable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    toy::writer(&lexicon(), &toy::ARRAYS).save(&path).unwrap();
    assert!(matches!(Checkpoint::open(&path), Err(FileError::WrongKind { .. })));
    checkpoint().save(&path).unwrap();
    assert!(ModelFile::open(&path).unwrap().expect_kind("toy").is_err());
    let found = inspect(&path).unwrap().header;
    assert_eq!((found.kind.as_str(), found.checkpoint.unwrap().of.as_str()), ("checkpoint", "toy"));
    assert_eq!(found.parameters["n_states"], 3);
}

#[test]
#[should_panic(expected = "can be read back")]
fn a_state_that_json_cannot_represent_panics_immediately() {
    Checkpoint::new("toy", &params().validate().unwrap(), DATA, &f64::NEG_INFINITY);
}

#[test]
fn the_fingerprint_depends_on_words_sentences_and_vocabulary() {
    let fingerprint = |vocab: &Vocab, sentences: &[&[u32]]| {
        let ids = |sentence: &&[u32]| sentence.iter().map(|&id| WordId(id)).collect::<Vec<_>>();
        data_fingerprint(vocab, &Sentences::from_words(sentences.iter().map(ids)))
    };
    let original = fingerprint(&vocab(), &[&[2, 3], &[2]]);
    assert_eq!(fingerprint(&vocab(), &[&[2, 3], &[2]]), original);
    assert_ne!(fingerprint(&vocab(), &[&[2, 2], &[2]]), original);
    assert_ne!(fingerprint(&vocab(), &[&[2], &[3, 2]]), original);
    let other = Vocab::from_parts(["<unk>", "<eos>", "a", "b"], vec![0; 4]).unwrap();
    assert_ne!(fingerprint(&other, &[&[2, 3], &[2]]), original);
}
