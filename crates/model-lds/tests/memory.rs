//! How much memory learning from counts takes: that of the counts, four matrices of words by `dim`, and little else.
//! The one test here has a program of its own, since it looks at all memory that is ever asked for.
#![allow(unsafe_code)]

use latens_corpus::{Corpus, Lexicon, Preprocessing, Sentences, Vocab, VocabLimits, WordId};
use latens_math::Rng;
use latens_model::{Params, unwatched};
use latens_model_lds::{Lds, LdsParams, Training};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system's memory, with a look at how much of it is in use.
struct Meter;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static METER: Meter = Meter;

impl Meter {
    fn take(size: usize) {
        let in_use = IN_USE.fetch_add(size, Ordering::Relaxed) + size;
        MOST.fetch_max(in_use, Ordering::Relaxed);
    }

    fn give_back(size: usize) {
        IN_USE.fetch_sub(size, Ordering::Relaxed);
    }
}

// SAFETY: all of it is what the system's allocator does.
unsafe impl GlobalAlloc for Meter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Meter::take(layout.size());
        // SAFETY: the caller keeps the promises of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Meter::take(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        Meter::give_back(layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both places may be there for a moment.
        Meter::take(size);
        Meter::give_back(layout.size());
        // SAFETY: as above.
        unsafe { System.realloc(place, layout, size) }
    }
}

const N_WORDS: usize = 40_000;

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
    let params = LdsParams { n_iterations: 1, power_iterations: 1, ..LdsParams::default() };
    let (dim, lags) = (params.dim, params.counted_lags());
    let params = params.validate().unwrap();
    let corpus = corpus();
    let training = Training::of(&params, &corpus, None, &mut unwatched).unwrap();
    let n_pairs: usize = training.counts.lags().iter().map(|lag| lag.nnz()).sum();
    let own_lexicon = IN_USE.load(Ordering::Relaxed) - 8 * n_pairs;
    MOST.store(0, Ordering::Relaxed);
    let lds = Lds::fit(&params, training, &mut unwatched).unwrap();
    let most = MOST.load(Ordering::Relaxed) - own_lexicon;

    // Both orientations, with a word and a number for each pair, and where rows begin.
    let counts = 2 * (8 * n_pairs + 8 * lags * (N_WORDS + 1));
    let matrices = 4 * N_WORDS * dim * size_of::<f32>();
    // Per word: sums of counts, probabilities, names; and matrices of `dim` by `dim`, most of them parts of sums
    // that threads add up.
    let vectors = 400 * N_WORDS;
    let small = 80 * dim * dim * size_of::<f64>();
    let allowed = counts + matrices + vectors + small;
    let mib = |bytes: usize| bytes as f64 / f64::from(1 << 20);
    eprintln!(
        "{:.0} MiB of {:.0}: counts {:.0}, matrices {:.0}, vectors {:.0}, small {:.0}",
        mib(most), mib(allowed), mib(counts), mib(matrices), mib(vectors), mib(small)
    );
    assert_eq!(lds.dim(), dim);
    assert!(most <= allowed, "{most} bytes, not {allowed}");
}
