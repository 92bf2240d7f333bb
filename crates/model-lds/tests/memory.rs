//! How much memory learning from counts takes: that of the counts, four matrices of words by `dim`, and little else.
//! The one test here has a program of its own, since it looks at all memory that is ever asked for; so all that is
//! measured is measured in turn.
#![allow(unsafe_code)]

use latens_corpus::{Corpus, Lexicon, Preprocessing, Sentences, Vocab, VocabLimits, WordId};
use latens_math::Rng;
use latens_model::{Params, Progress, unwatched};
use latens_model_lds::{Lds, LdsParams, Training};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system's memory, with a look at how much of it is in use. What begins with a whole page is left out: the
/// library of products of matrices reserves twice the size of the third cache so for every thread, and touches next
/// to nothing of it.
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

// SAFETY: all of it is what the system's allocator does.
unsafe impl GlobalAlloc for Meter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Meter::take(layout.size(), layout);
        // SAFETY: the caller keeps the promises of `alloc`.
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
        // Both places may be there for a moment.
        Meter::take(size, layout);
        Meter::give_back(layout);
        // SAFETY: as above.
        unsafe { System.realloc(place, layout, size) }
    }
}

const N_WORDS: usize = 30_000;

/// Every word once, and then words by chance, frequent ones more often.
fn corpus(seed: u64) -> Corpus {
    let limits = VocabLimits::default();
    let names: Vec<String> = (0..N_WORDS - 2).map(|i| format!("w{i}")).collect();
    let seen = names.iter().map(|name| (name.as_str(), 1)).chain([("<eos>", 1)]);
    let vocab = Vocab::from_counts(seen, &limits);
    let mut rng = Rng::new(seed);
    let mut word = |i: usize| {
        let by_chance = (rng.uniform().powi(3) * (N_WORDS - 2) as f64) as usize;
        WordId::from(2 + if i < N_WORDS - 2 { i } else { by_chance })
    };
    let words: Vec<WordId> = (0..5 * N_WORDS).map(&mut word).collect();
    let sentences = Sentences::from_words(words.chunks(25).map(<[WordId]>::to_vec));
    let lexicon = Lexicon { preprocessing: Preprocessing::default(), limits, vocab };
    Corpus { lexicon, sentences }
}

/// What is learned from, and what is asked of it on the way.
struct Case<'a> {
    corpus: &'a Corpus,
    dim: usize,
    n_iterations: usize,
    /// With it, a checkpoint is saved after each step, as the program does.
    valid: Option<&'a Sentences>,
}

/// The most memory that was in use while a model was learned, besides what was there before; how many pairs were
/// counted; and the model.
fn most_in_use(case: &Case<'_>) -> (usize, usize, Lds) {
    let Case { corpus, dim, n_iterations, valid } = *case;
    let params = LdsParams { dim, n_iterations, power_iterations: 0, ..LdsParams::default() };
    let params = params.validate().unwrap();
    // Every thread has room of its own for a few hundred rows of products.
    let threads = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut n_checkpoints = 0;
    let mut watch = |progress: &Progress<'_>| {
        if let (Some(make), true) = (progress.checkpoint, valid.is_some()) {
            make().unwrap().save(&folder.path().join("checkpoint")).unwrap();
            n_checkpoints += 1;
        }
        ControlFlow::Continue(())
    };
    let training = Training::of(&params, corpus, valid, &mut unwatched).unwrap();
    let n_pairs = training.counts.lags().iter().map(|lag| lag.nnz()).sum();
    // Counts that are handed over have one orientation.
    let before = IN_USE.load(Ordering::Relaxed) - 8 * n_pairs;
    MOST.store(0, Ordering::Relaxed);
    let lds = threads.install(|| Lds::fit(&params, training, &mut watch)).unwrap();
    let most = MOST.load(Ordering::Relaxed) - before;
    assert_eq!(n_checkpoints, valid.map_or(0, |_| n_iterations + 1));
    (most, n_pairs, lds)
}

fn check(case: &Case<'_>) -> Lds {
    let dim = case.dim;
    let (most, n_pairs, lds) = most_in_use(case);
    // Both orientations, with a word and a number for each pair, and where rows begin.
    let lags = LdsParams::default().counted_lags();
    let counts = 2 * (8 * n_pairs + 8 * lags * (N_WORDS + 1));
    let matrices = 4 * N_WORDS * dim * size_of::<f32>();
    // For each word its name, its probability and sums of its counts; and matrices of `dim` by `dim`, most of them
    // parts of sums that threads add up. Together less than a fifth matrix would be.
    let vectors = 250 * N_WORDS;
    let small = 40 * dim * dim * size_of::<f64>();
    assert!(vectors + small < matrices / 4, "a fifth matrix is noticed");
    let allowed = counts + matrices + vectors + small;
    assert_eq!(lds.dim(), dim);
    assert!(most <= allowed, "{dim}: {most} bytes, not {allowed}, {counts} of them for counts");
    assert!(most > counts + matrices / 2, "{dim}: {most} bytes: was it measured?");
    lds
}

#[test]
fn learning_takes_the_counts_and_four_matrices() {
    let corpus = corpus(1);
    for dim in [200, 100] {
        check(&Case { corpus: &corpus, dim, n_iterations: 1, valid: None });
    }
    // Of words by chance nothing can be learned for others, so that the first model is the best one, and one more
    // matrix is kept from then on.
    let valid = Sentences::from_words(
        self::corpus(2).sentences.iter().skip(1200).take(100).map(<[WordId]>::to_vec),
    );
    let lds = check(&Case { corpus: &corpus, dim: 100, n_iterations: 2, valid: Some(&valid) });
    assert_eq!(lds.facts()["best_iteration"], 0);
}
