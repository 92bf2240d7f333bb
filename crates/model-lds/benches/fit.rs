//! One product with the block Hankel matrix and one iteration of EM, on synthetic Zipfian text.
//!
//! The trainer reports after every product and iteration. The benchmark times the intervals between reports, which
//! excludes counting and the final steps.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use latens_corpus::Corpus;
use latens_counts::{Boundary, Budget, LagCounts};
use latens_model::Fit;
use latens_model_lds::{Lds, LdsInputs, LdsParams};
use latens_testkit::zipfian_corpus;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Sizes of text and model; `paper` is about the size of the Penn Treebank.
const SIZES: [Size; 3] = [
    Size { name: "tiny", n_words: 1_000, n_sentences: 500, dim: 16 },
    Size { name: "small", n_words: 5_000, n_sentences: 5_000, dim: 100 },
    Size { name: "paper", n_words: 10_000, n_sentences: 42_000, dim: 200 },
];

struct Size {
    name: &'static str,
    n_words: usize,
    n_sentences: usize,
    dim: usize,
}

/// Maximum number of iterations from one initial model, since synthetic text has little structure to learn.
const MAX_STEPS: u64 = 8;

fn benches(criterion: &mut Criterion) {
    for size in &SIZES {
        let corpus = zipfian_corpus(size.n_words, size.n_sentences, 1);
        let params = Lds::params().dim(size.dim).pseudo_counts(20.0);
        let params = params.n_iterations(100_000).power_iterations(4);
        let mut group = criterion.benchmark_group(size.name);
        group.sample_size(10);
        group.throughput(Throughput::Elements(n_pairs(&params, &corpus)));
        for (name, phase) in
            [("product with the Hankel matrix", "find the subspace"), ("EM step", "learn")]
        {
            group.bench_function(name, |bench| {
                bench.iter_custom(|n| {
                    let runs = (0..n).step_by(MAX_STEPS as usize);
                    runs.map(|done| time(&params, &corpus, phase, MAX_STEPS.min(n - done))).sum()
                });
            });
        }
        group.finish();
    }
}

/// Number of distinct pairs of words, summed over all lags.
fn n_pairs(params: &LdsParams, corpus: &Corpus) -> u64 {
    count(params, corpus).lags().iter().map(|lag| lag.nnz() as u64).sum()
}

fn count(params: &LdsParams, corpus: &Corpus) -> LagCounts {
    let (n_lags, go_on) = (params.counted_lags(), &mut |_| ControlFlow::Continue(()));
    let counts = LagCounts::of(corpus, n_lags, Boundary::Stream, &Budget::default(), go_on);
    counts.expect("the corpus has pairs")
}

/// Time of `n` reports of a phase after its first report.
fn time(params: &LdsParams, corpus: &Corpus, phase: &str, n: u64) -> Duration {
    let inputs = LdsInputs::default().take_counts(count(params, corpus));
    let (mut n_reports, mut started, mut taken) = (0, Instant::now(), Duration::ZERO);
    let builder = params.clone().with(inputs).watch(|progress| {
        if progress.phase != phase {
            return ControlFlow::Continue(());
        }
        n_reports += 1;
        if n_reports == 1 {
            started = Instant::now();
        }
        taken = started.elapsed();
        if n_reports > n { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(builder.fit(corpus).is_err(), "the watcher stops the training");
    taken
}

criterion_group!(fit, benches);
criterion_main!(fit);
