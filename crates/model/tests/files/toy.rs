//! A small model with an array of every type.

use latens_corpus::{Digits, Lexicon, Preprocessing, Vocab, VocabLimits, WordId};
use latens_model::{ModelWriter, ParamError, Params, check_range};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToyParams {
    pub(crate) n_states: usize,
    pub(crate) rate: f64,
    pub(crate) n_iterations: usize,
}

impl Params for ToyParams {
    fn check(&self) -> Result<(), ParamError> {
        check_range("n_states", self.n_states, 1..)?;
        check_range("rate", self.rate, 0.0..=1.0)
    }
}

/// A number that `serde_json` parses to an adjacent float without the feature `float_roundtrip`.
pub(crate) const RATE: f64 = 0.198_440_042_788_562_86;

pub(crate) fn params() -> ToyParams {
    ToyParams { n_states: 3, rate: RATE, n_iterations: 20 }
}

pub(crate) fn preprocessing() -> Preprocessing {
    Preprocessing::default()
        .tokenize(latens_corpus::Tokenize::Words)
        .lowercase(true)
        .digits(Digits::Zero)
        .normalize(latens_corpus::Normalize::Nfkc)
}

pub(crate) const LIMITS: VocabLimits = VocabLimits { min_count: 2, max_vocab: 10 };

pub(crate) fn vocab() -> Vocab {
    Vocab::from_counts([("naïve", 3), ("東京", 5), ("<eos>", 4), ("rare", 1)], &LIMITS)
}

pub(crate) fn lexicon() -> Lexicon {
    Lexicon::new(preprocessing(), LIMITS, vocab())
}

/// The extreme values of each type, including negative zero.
pub(crate) struct Arrays {
    pub(crate) f32s: [f32; 4],
    pub(crate) f64s: [f64; 3],
    pub(crate) u8s: [u8; 3],
    pub(crate) u16s: [u16; 1],
    pub(crate) u32s: [u32; 2],
    pub(crate) u64s: [u64; 2],
    pub(crate) i8s: [i8; 2],
    pub(crate) i16s: [i16; 2],
    pub(crate) i32s: [i32; 2],
    pub(crate) i64s: [i64; 2],
    pub(crate) words: [WordId; 3],
}

pub(crate) const ARRAYS: Arrays = Arrays {
    f32s: [-0.0, f32::MIN_POSITIVE, f32::MAX, 0.1],
    f64s: [-0.0, f64::MIN_POSITIVE, 0.1],
    u8s: [0, 1, u8::MAX],
    u16s: [u16::MAX],
    u32s: [0, u32::MAX],
    u64s: [0, u64::MAX],
    i8s: [i8::MIN, i8::MAX],
    i16s: [i16::MIN, i16::MAX],
    i32s: [i32::MIN, i32::MAX],
    i64s: [i64::MIN, i64::MAX],
    words: [WordId::UNK, WordId::EOS, WordId(7)],
};

/// The model as a file. Arrays are added in a different order than they are stored.
pub(crate) fn writer<'a>(lexicon: &'a Lexicon, arrays: &'a Arrays) -> ModelWriter<'a> {
    ModelWriter::new("toy", &params().validate().unwrap())
        .array("u8s", &[3, 1], &arrays.u8s)
        .array("empty", &[0, 5], &[0f64; 0])
        .array("scalar", &[], &arrays.u16s)
        .array("f32s", &[2, 2], &arrays.f32s)
        .lexicon(lexicon)
        .array("f64s", &[3], &arrays.f64s)
        .array("u32s", &[2], &arrays.u32s)
        .array("u64s", &[2], &arrays.u64s)
        .array("i8s", &[2], &arrays.i8s)
        .array("i16s", &[2], &arrays.i16s)
        .array("i32s", &[2], &arrays.i32s)
        .array("i64s", &[2], &arrays.i64s)
        .array("words", &[3], &arrays.words)
        .array("empty bytes", &[0], &[0u8; 0])
        .fact("tokens", 13)
        .fact("seconds", 0.25)
        .fact("seconds_per_epoch", 0.125)
        .fact("tokens_per_second", 52.0)
}

pub(crate) fn bytes() -> Vec<u8> {
    let mut bytes = Vec::new();
    writer(&lexicon(), &ARRAYS).write_to(&mut bytes).unwrap();
    bytes
}
