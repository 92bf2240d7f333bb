//! Peak memory of learning from counts: the counts, four matrices of words by `dim`, and little else.
//!
//! The test measures the allocations of the whole process, so it is the only one in this file and measures its cases
//! one after the other.
#![allow(unsafe_code)]

use latens_corpus::{Corpus, Lexicon, Preprocessing, Sentences, Vocab, VocabLimits, WordId};
use latens_counts::{Boundary, Budget, LagCounts};
use latens_math::Rng;
use latens_model::{Fit, Progress};
use latens_model_lds::{Lds, LdsInputs};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system allocator with a counter of the bytes in use.
///
/// Allocations aligned to a page are not counted: the matrix multiplication library reserves twice the size of the L3
/// cache per thread this way, and touches almost none of it.
struct Meter;

const PAGE: usize = 4096;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static METER: Meter = Meter;

impl Meter {
    fn take(size: usize, layout: Layout) {
        if layout.align() < PAGE {
            let in_use = IN_USE.fetch_add(size, Ordering::Relaxed) + size;
            MOST.fetch_max(in_use, Ordering::Relaxed);
        }
    }

    fn give_back(layout: Layout) {
        if layout.align() < PAGE {
            IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        }
    }
}

// SAFETY: every method forwards to the system allocator.
unsafe impl GlobalAlloc for Meter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Meter::take(layout.size(), layout);
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Meter::take(layout.size(), layout);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        Meter::give_back(layout);
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // The old and the new block may exist at the same time.
        Meter::take(size, layout);
        Meter::give_back(layout);
        // SAFETY: as above.
        unsafe { System.realloc(place, layout, size) }
    }
}

const N_WORDS: usize = 30_000;

/// Every word once, followed by random words with a skewed distribution.
fn corpus(seed: u64) -> Corpus {
    let limits = VocabLimits::default();
    let names: Vec<String> = (0..N_WORDS - 2).map(|i| format!("w{i}")).collect();
    let seen = names.iter().map(|name| (name.as_str(), 1)).chain([("<eos>", 1)]);
    let vocab = Vocab::from_counts(seen, &limits);
    let mut rng = Rng::new(seed);
    let mut word = |i: usize| {
        let random = (rng.uniform().powi(3) * (N_WORDS - 2) as f64) as usize;
        WordId::from(2 + if i < N_WORDS - 2 { i } else { random })
    };
    let words: Vec<WordId> = (0..5 * N_WORDS).map(&mut word).collect();
    let sentences = Sentences::from_words(words.chunks(25).map(<[WordId]>::to_vec));
    let lexicon = Lexicon::new(Preprocessing::default(), limits, vocab);
    Corpus { lexicon, sentences }
}

/// A training run to measure.
struct Case<'a> {
    corpus: &'a Corpus,
    dim: usize,
    n_iterations: usize,
    /// Held-out text. If present, a checkpoint is saved after each iteration.
    valid: Option<&'a Sentences>,
}

/// The peak memory of training beyond what was in use before, the number of counted pairs, and the model.
fn peak_memory(case: &Case<'_>) -> (usize, usize, Lds) {
    let Case { corpus, dim, n_iterations, valid } = *case;
    let params = Lds::params().dim(dim).n_iterations(n_iterations).power_iterations(0);
    // Every thread has scratch space for a few hundred rows of products.
    let threads = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut n_checkpoints = 0;
    let watch = |progress: &Progress<'_>| {
        if let (Some(make), true) = (progress.checkpoint, valid.is_some()) {
            make().unwrap().save(folder.path().join("checkpoint")).unwrap();
            n_checkpoints += 1;
        }
        ControlFlow::Continue(())
    };
    let (n_lags, go_on) = (params.counted_lags(), &mut |_| ControlFlow::Continue(()));
    let counts =
        LagCounts::of(corpus, n_lags, Boundary::Stream, &Budget::default(), go_on).unwrap();
    let n_pairs = counts.lags().iter().map(|lag| lag.nnz()).sum();
    // The counts are stored in one orientation.
    let before = IN_USE.load(Ordering::Relaxed) - 8 * n_pairs;
    MOST.store(0, Ordering::Relaxed);
    let fit = || {
        let builder = params.with(LdsInputs::default().take_counts(counts)).watch(watch);
        let builder = match valid {
            Some(valid) => builder.valid(valid),
            None => builder,
        };
        builder.fit(corpus).unwrap()
    };
    let lds = threads.install(fit);
    let most = MOST.load(Ordering::Relaxed) - before;
    assert_eq!(n_checkpoints, valid.map_or(0, |_| n_iterations + 1));
    (most, n_pairs, lds)
}

fn check(case: &Case<'_>) -> Lds {
    let dim = case.dim;
    let (most, n_pairs, lds) = peak_memory(case);
    // Both orientations, with a column and a value per pair, and the offsets of rows.
    let lags = Lds::params().counted_lags();
    let counts = 2 * (8 * n_pairs + 8 * lags * (N_WORDS + 1));
    let matrices = 4 * N_WORDS * dim * size_of::<f32>();
    // The name, probability and count sums of each word; and matrices of `dim` by `dim`, most of them partial sums of
    // threads. Together they are smaller than a fifth matrix.
    let vectors = 250 * N_WORDS;
    let small = 40 * dim * dim * size_of::<f64>();
    assert!(vectors + small < matrices / 4, "a fifth matrix would not be noticed");
    let allowed = counts + matrices + vectors + small;
    assert_eq!(lds.dim(), dim);
    assert!(most <= allowed, "{dim}: {most} bytes exceed {allowed}, {counts} of them for counts");
    assert!(most > counts + matrices / 2, "{dim}: {most} bytes are implausibly few");
    lds
}

#[test]
fn learning_needs_at_most_the_counts_and_four_matrices() {
    let corpus = corpus(1);
    for dim in [200, 100] {
        check(&Case { corpus: &corpus, dim, n_iterations: 1, valid: None });
    }
    // Nothing learned from random words generalizes, so the initial model is the best one, and training keeps one
    // more matrix from then on.
    let valid = Sentences::from_words(
        self::corpus(2).sentences.iter().skip(1200).take(100).map(<[WordId]>::to_vec),
    );
    let lds = check(&Case { corpus: &corpus, dim: 100, n_iterations: 2, valid: Some(&valid) });
    assert_eq!(lds.facts()["best_iteration"], 0);
}
