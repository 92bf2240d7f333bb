//! Model files round-trip, and invalid requests have clear errors.

use crate::toy;
use crate::toy::{ARRAYS, LIMITS, ToyParams, lexicon, params, preprocessing, vocab, writer};
use latens_corpus::WordId;
use latens_model::ElementType;
use latens_model::{Element, FileError, ModelFile, ModelWriter, ParamError, Params, inspect};
use safetensors::SafeTensors;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::path::PathBuf;

fn saved(writer: &ModelWriter) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    writer.save(&path).unwrap();
    (folder, path)
}

fn opened() -> ModelFile {
    let (_folder, path) = saved(&writer(&lexicon(), &ARRAYS));
    ModelFile::open(&path).unwrap()
}

fn message<T>(result: Result<T, FileError>) -> String {
    result.err().expect("the request should fail").to_string()
}

fn assert_same<T: Element + Debug>(file: &ModelFile, name: &str, shape: &[usize], values: &[T]) {
    let array = file.array::<T>(name, shape).unwrap();
    assert_eq!(bytemuck::cast_slice::<T, u8>(&array), bytemuck::cast_slice::<T, u8>(values));
}

#[test]
fn arrays_of_every_type_round_trip_bit_for_bit() {
    let file = opened();
    assert_same(&file, "f32s", &[2, 2], &ARRAYS.f32s);
    assert_same(&file, "f64s", &[3], &ARRAYS.f64s);
    assert_same(&file, "u8s", &[3, 1], &ARRAYS.u8s);
    assert_same(&file, "scalar", &[], &ARRAYS.u16s);
    assert_same(&file, "u32s", &[2], &ARRAYS.u32s);
    assert_same(&file, "u64s", &[2], &ARRAYS.u64s);
    assert_same(&file, "i8s", &[2], &ARRAYS.i8s);
    assert_same(&file, "i16s", &[2], &ARRAYS.i16s);
    assert_same(&file, "i32s", &[2], &ARRAYS.i32s);
    assert_same(&file, "i64s", &[2], &ARRAYS.i64s);
    assert_same(&file, "words", &[3], &ARRAYS.words);
    assert_same::<f64>(&file, "empty", &[0, 5], &[]);
    assert_same::<u8>(&file, "empty bytes", &[0], &[]);
}

#[test]
fn header_and_vocabulary_round_trip() {
    let file = opened();
    assert_eq!(file.kind(), "toy");
    assert_eq!(*file.parameters::<ToyParams>().unwrap(), params());
    assert_eq!(file.preprocessing().unwrap(), preprocessing());
    assert_eq!(file.vocab_limits().unwrap(), LIMITS);
    assert_eq!(file.header().training["tokens"], 13);
    let times = ["seconds", "seconds_per_epoch", "tokens_per_second"];
    assert!(times.iter().all(|&time| !file.header().training.contains_key(time)));
    let (found, expected) = (file.vocab().unwrap(), vocab());
    assert!(found.words().eq(expected.words()));
    assert_eq!(found.counts(), expected.counts());
    assert_eq!(found.id("東京"), expected.id("東京"));
    let lexicon = file.lexicon().unwrap();
    assert_eq!((lexicon.preprocessing, lexicon.limits), (preprocessing(), LIMITS));
    assert_eq!(lexicon.vocab.fingerprint(), expected.fingerprint());
}

#[test]
fn serialization_is_deterministic() {
    assert_eq!(toy::bytes(), toy::bytes());
}

#[test]
fn a_file_may_have_no_arrays() {
    let (_folder, path) = saved(&ModelWriter::new("bare", &params().validate().unwrap()));
    let file = ModelFile::open(&path).unwrap();
    assert!(matches!(file.vocab(), Err(FileError::MissingArray { .. })));
    assert!(matches!(file.preprocessing(), Err(FileError::Invalid { .. })));
}

#[test]
fn other_programs_can_read_named_and_aligned_arrays() {
    let bytes = toy::bytes();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let tensor = tensors.tensor("f32s").unwrap();
    assert_eq!((tensor.dtype(), tensor.shape()), (safetensors::Dtype::F32, &[2, 2][..]));
    assert_eq!(tensor.data(), bytemuck::cast_slice::<f32, u8>(&ARRAYS.f32s));
    assert_eq!(tensors.tensor("vocab.letters").unwrap().data(), "<unk><eos>東京naïve".as_bytes());

    let (n_json, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
    assert_eq!((n_json + 8) % 64, 0);
    for (name, info) in metadata.tensors() {
        assert_eq!(info.data_offsets.0 % (info.dtype.bitsize() / 8), 0, "{name}");
    }
}

#[test]
fn inspection_returns_everything_except_values() {
    let (_folder, path) = saved(&writer(&lexicon(), &ARRAYS));
    let found = inspect(&path).unwrap();
    assert_eq!(found.header, *ModelFile::open(&path).unwrap().header());
    assert_eq!(found.header.latens_version, env!("CARGO_PKG_VERSION"));
    assert_eq!(found.n_bytes, path.metadata().unwrap().len());
    assert_eq!(found.arrays.len(), 16);
    let words = found.arrays.iter().find(|array| array.name == "words").unwrap();
    assert_eq!((words.dtype, &words.shape[..]), (ElementType::U32, &[3][..]));
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["parameters"]["n_states"], 3);
    assert_eq!(json["arrays"][0]["dtype"], "F64");
}

#[test]
fn inspection_checks_the_length_but_not_the_values_of_arrays() {
    let (_folder, path) = saved(&writer(&lexicon(), &ARRAYS));
    let mut bytes = toy::bytes();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    assert!(inspect(&path).is_ok());
    assert!(matches!(ModelFile::open(&path), Err(FileError::Corrupt { .. })));
    bytes.pop();
    std::fs::write(&path, &bytes).unwrap();
    assert!(matches!(inspect(&path), Err(FileError::Truncated { .. })));
}

#[test]
fn mismatched_requests_are_rejected_with_clear_messages() {
    let file = opened();
    let name = file.path().display().to_string();
    let cases = [
        (message(file.array::<f32>("absent", &[3])), format!("`{name}` has no array `absent`")),
        (
            message(file.array::<f32>("f64s", &[3])),
            format!("the array `f64s` in `{name}` is F64 [3], expected F32 [3]"),
        ),
        (
            message(file.array::<f32>("f32s", &[4])),
            format!("the array `f32s` in `{name}` is F32 [2, 2], expected F32 [4]"),
        ),
        (
            message(file.vector::<f32>("f32s")),
            format!("the array `f32s` in `{name}` is F32 [2, 2], expected F32 [any length]"),
        ),
        (
            message(file.expect_kind("ngram")),
            format!("`{name}` is of kind `toy`, expected `ngram`"),
        ),
        (
            message::<()>(Err(file.invalid("its rows do not sum to one"))),
            format!("`{name}` is not a valid model: its rows do not sum to one"),
        ),
    ];
    for (found, expected) in cases {
        assert_eq!(found, expected);
    }
    assert!(file.expect_kind("toy").is_ok());
    assert_eq!(file.vector::<WordId>("words").unwrap().len(), 3);
    assert_eq!(file.shape("f32s").unwrap(), [2, 2]);
}

#[test]
fn finite_array_rejects_infinite_values_and_nan() {
    let params = params().validate().unwrap();
    let (bad, good) = ([0.0, f32::NAN], [f64::MAX, -0.0]);
    let (_folder, path) = saved(&ModelWriter::new("toy", &params).array("bad", &[2], &bad).array(
        "good",
        &[2],
        &good,
    ));
    let file = ModelFile::open(&path).unwrap();
    assert!(file.array::<f32>("bad", &[2]).is_ok());
    assert!(matches!(file.finite_array::<f32>("bad", &[2]), Err(FileError::NotFinite { .. })));
    assert!(file.finite_array::<f64>("good", &[2]).is_ok());
}

/// Parameters of a different version of the program.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Other {
    n_states: usize,
}

impl Params for Other {
    fn check(&self) -> Result<(), ParamError> {
        latens_model::check_range("n_states", self.n_states, 5..)
    }
}

#[test]
fn parameters_are_validated_when_read() {
    let error = opened().parameters::<Other>().err().unwrap();
    assert!(matches!(error, FileError::Params { .. }), "{error}");
    let (_folder, path) =
        saved(&ModelWriter::new("toy", &Other { n_states: 9 }.validate().unwrap()));
    let error = ModelFile::open(&path).unwrap().parameters::<ToyParams>().err().unwrap();
    assert!(matches!(error, FileError::BadHeader { .. }), "{error}");
}

#[test]
fn invalid_vocabularies_are_rejected() {
    let params = params().validate().unwrap();
    let vocab_of = |letters: &[u8], ends: &[u64], counts: &[u64]| {
        let writer = ModelWriter::new("toy", &params)
            .array("vocab.letters", &[letters.len()], letters)
            .array("vocab.ends", &[ends.len()], ends)
            .array("vocab.counts", &[counts.len()], counts);
        let (_folder, path) = saved(&writer);
        ModelFile::open(&path).unwrap().vocab()
    };
    let letters = "<unk><eos>né".as_bytes();
    assert!(vocab_of(letters, &[5, 10, 13], &[1, 2, 3]).is_ok());
    let not_divided = [&[5, 10, 12][..], &[5, 10], &[5, 4, 13], &[5, 10, 14], &[5, 10, u64::MAX]];
    for ends in not_divided {
        let error = vocab_of(letters, ends, &[1, 2, 3]).err();
        assert!(matches!(error, Some(FileError::Vocab { .. })), "{ends:?}: {error:?}");
    }
    let twice = vocab_of(b"<unk><eos>aa", &[5, 10, 11, 12], &[0; 4]).err();
    assert!(matches!(twice, Some(FileError::Vocab { .. })), "{twice:?}");
    assert!(vocab_of(letters, &[5, 10, 13], &[1, 2]).is_err());
    assert!(vocab_of(b"<unk><eos>\xff", &[5, 10, 11], &[1, 2, 3]).is_err());
}

#[test]
#[should_panic(expected = "`a` of shape [2, 2] has 3 values")]
fn a_shape_that_does_not_match_its_values_panics() {
    let _ = ModelWriter::new("toy", &params().validate().unwrap()).array("a", &[2, 2], &[0u8; 3]);
}

#[test]
#[should_panic(expected = "duplicate array `a`")]
fn a_duplicate_array_name_panics() {
    let params = params().validate().unwrap();
    let _ = ModelWriter::new("toy", &params).array("a", &[1], &[0u8]).array("a", &[1], &[0u8]);
}
