//! Toy texts and checks that the tests share.
#![allow(dead_code, reason = "each test program uses only a part of this module")]

use latens_corpus::{Corpus, Lexicon, Preprocessing, Sentences, Vocab, VocabLimits, WordId};
use latens_counts::{Boundary, Budget, CountError, LagCounts, NgramCounts};
use proptest::prelude::*;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// Files of sentences of words, without end-of-sentence tokens.
pub(crate) type Files = Vec<Vec<Vec<u32>>>;

/// Number of distinct words in [`files`], including `<unk>` and `<eos>`.
pub(crate) const N_WORDS: usize = 6;

/// Random toy texts, including empty files and empty sentences.
pub(crate) fn files() -> impl Strategy<Value = Files> {
    let word = prop::sample::select(vec![0, 2, 2, 2, 3, 3, 4, 5]);
    let sentence = prop::collection::vec(word, 0..9);
    prop::collection::vec(prop::collection::vec(sentence, 0..9), 1..4)
}

pub(crate) fn sentences(files: &[Vec<Vec<u32>>]) -> Sentences {
    let (mut ids, mut offsets, mut segments) = (Vec::new(), vec![0], vec![0]);
    for file in files {
        for sentence in file {
            ids.extend(sentence.iter().map(|&id| WordId(id)));
            ids.push(WordId::EOS);
            offsets.push(ids.len() as u64);
        }
        segments.push(offsets.len() as u64 - 1);
    }
    Sentences::from_parts(ids.into(), offsets.into(), segments.into(), N_WORDS).unwrap()
}

/// A vocabulary of a given size.
pub(crate) fn vocab(n_words: usize) -> Vocab {
    let special = ["<unk>", "<eos>"].map(str::to_owned);
    let words = special.into_iter().chain((2..n_words).map(|id| format!("w{id}")));
    Vocab::from_parts(words, vec![9; n_words]).unwrap()
}

pub(crate) fn corpus(files: &[Vec<Vec<u32>>]) -> Corpus {
    let (preprocessing, limits) = (Preprocessing::default(), VocabLimits::default());
    let lexicon = Lexicon::new(preprocessing, limits, vocab(N_WORDS));
    Corpus { lexicon, sentences: sentences(files) }
}

pub(crate) fn budget(bytes: usize) -> Budget {
    Budget::default().bytes(bytes)
}

/// Budgets that keep everything in memory, move a part to disk, and move nearly everything to disk.
pub(crate) const BUDGETS: [usize; 3] = [1 << 30, 600, 0];

pub(crate) fn count_ngrams(files: &[Vec<Vec<u32>>], order: usize, bytes: usize) -> NgramCounts {
    let mut watch = |_| ControlFlow::Continue(());
    NgramCounts::of(&sentences(files), &vocab(N_WORDS), order, &budget(bytes), &mut watch).unwrap()
}

pub(crate) fn count_lags(
    files: &[Vec<Vec<u32>>],
    n_lags: usize,
    boundary: Boundary,
    bytes: usize,
) -> LagCounts {
    let mut watch = |_| ControlFlow::Continue(());
    LagCounts::of(&corpus(files), n_lags, boundary, &budget(bytes), &mut watch).unwrap()
}

pub(crate) fn with_threads<T: Send>(n_threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap().install(work)
}

/// The bytes of the file that `save` writes.
pub(crate) fn bytes_of(save: impl FnOnce(&Path) -> Result<(), CountError>) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counts");
    save(&path).unwrap();
    fs::read(&path).unwrap()
}

/// Opens the file with each bit flipped in turn and the checksum corrected, and calls `use_it` with
/// whatever still opens. Nothing may panic.
pub(crate) fn check_invalid_content_never_panics<T>(
    bytes: &[u8],
    open: impl Fn(&Path) -> Result<T, CountError>,
    use_it: impl Fn(&T),
) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counts");
    let end = bytes.len() - 8;
    for (at, bit) in (0..end).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
        let mut changed = bytes.to_vec();
        changed[at] ^= 1 << bit;
        let checksum = xxh3_64(&changed[..end]);
        changed[end..].copy_from_slice(&checksum.to_le_bytes());
        fs::write(&path, changed).unwrap();
        if let Ok(counts) = open(&path) {
            use_it(&counts);
        }
    }
}

/// Checks that `open` refuses every truncated copy of the file and every copy with a changed byte.
pub(crate) fn check_damage_is_detected<T>(
    bytes: &[u8],
    open: impl Fn(&Path) -> Result<T, CountError>,
) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counts");
    let opens = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        open(&path)
    };
    assert!(opens(bytes).is_ok());
    for length in 0..bytes.len() {
        assert!(opens(&bytes[..length]).is_err(), "truncated to {length} bytes");
    }
    for at in 0..bytes.len() {
        let mut damaged = bytes.to_vec();
        damaged[at] ^= 1 << (at % 8);
        let Err(error) = opens(&damaged) else { panic!("byte {at} was changed") };
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    }
}
