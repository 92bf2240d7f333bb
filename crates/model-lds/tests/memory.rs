//! How much memory learning from counts takes: that of the counts, four matrices of words by `dim`, and little else.
//! The one test here has a program of its own, since it looks at all memory that is ever asked for.
#![allow(unsafe_code)]

use latens_corpus::{Corpus, Lexicon, Preprocessing, Sentences, Vocab, VocabLimits, WordId};
use latens_math::Rng;
use latens_model::{Params, unwatched};
use latens_model_lds::{Lds, LdsParams, Training};
use std::alloc::{GlobalAlloc, Layout, System};
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
fn corpus() -> Corpus {
    let limits = VocabLimits::default();
    let names: Vec<String> = (0..N_WORDS - 2).map(|i| format!("w{i}")).collect();
    let seen = names.iter().map(|name| (name.as_str(), 1)).chain([("<eos>", 1)]);
    let vocab = Vocab::from_counts(seen, &limits);
    let mut rng = Rng::new(1);
    let mut word = |i: usize| {
        let by_chance = (rng.uniform().powi(3) * (N_WORDS - 2) as f64) as usize;
        WordId::from(2 + if i < N_WORDS - 2 { i } else { by_chance })
    };
    let words: Vec<WordId> = (0..5 * N_WORDS).map(&mut word).collect();
    let sentences = Sentences::from_words(words.chunks(25).map(<[WordId]>::to_vec));
    let lexicon = Lexicon { preprocessing: Preprocessing::default(), limits, vocab };
    Corpus { lexicon, sentences }
}

#[test]
fn learning_takes_the_counts_and_four_matrices() {
    let params = LdsParams { n_iterations: 1, power_iterations: 0, ..LdsParams::default() };
    let (dim, lags) = (params.dim, params.counted_lags());
    let params = params.validate().unwrap();
    let corpus = corpus();
    // Every thread has room of its own for a few hundred rows of products.
    let threads = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let training = Training::of(&params, &corpus, None, &mut unwatched).unwrap();
    let n_pairs: usize = training.counts.lags().iter().map(|lag| lag.nnz()).sum();
    // Counts that are handed over have one orientation.
    let before = IN_USE.load(Ordering::Relaxed) - 8 * n_pairs;
    MOST.store(0, Ordering::Relaxed);
    let lds = threads.install(|| Lds::fit(&params, training, &mut unwatched)).unwrap();
    let most = MOST.load(Ordering::Relaxed) - before;

    // Both orientations, with a word and a number for each pair, and where rows begin.
    let counts = 2 * (8 * n_pairs + 8 * lags * (N_WORDS + 1));
    let matrices = 4 * N_WORDS * dim * size_of::<f32>();
    // For each word its name, its probability and sums of its counts; and matrices of `dim` by `dim`, most of them
    // parts of sums that threads add up. Together less than a fifth matrix would be.
    let vectors = 250 * N_WORDS;
    let small = 40 * dim * dim * size_of::<f64>();
    assert!(vectors + small < matrices / 4, "a fifth matrix is noticed");
    let allowed = counts + matrices + vectors + small;
    assert_eq!(lds.dim(), dim);
    assert!(most <= allowed, "{most} bytes, not {allowed}, {counts} of them for counts");
    assert!(most > counts + matrices / 2, "{most} bytes: was it measured?");
}
