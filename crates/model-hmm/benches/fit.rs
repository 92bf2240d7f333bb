//! One gradient step on a mini-batch, and one iteration of Baum–Welch, on synthetic text with Zipfian words.
//!
//! The time is measured between progress reports, which come after every step, so that initialization and the final
//! model do not count.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use latens_corpus::{Corpus, WordId};
use latens_model::{Fit, WordClusters};
use latens_model_hmm::{Constraint, Hmm, HmmInputs, HmmParams, Learning, Parameterization};
use latens_testkit::zipfian_corpus;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Sizes of text and model. `paper` is the size of the Penn Treebank and a model with 16,384 states, of which state
/// dropout keeps half; the scalar parameterization has at most 4,096 states.
const SIZES: [Size; 3] = [
    Size { name: "tiny", n_words: 1_000, n_sentences: 500, n_states: 64, n_clusters: 8, dim: 16 },
    Size {
        name: "small",
        n_words: 5_000,
        n_sentences: 5_000,
        n_states: 1024,
        n_clusters: 32,
        dim: 128,
    },
    Size {
        name: "paper",
        n_words: 10_000,
        n_sentences: 42_000,
        n_states: 16384,
        n_clusters: 128,
        dim: 256,
    },
];

struct Size {
    name: &'static str,
    n_words: usize,
    n_sentences: usize,
    n_states: usize,
    n_clusters: usize,
    dim: usize,
}

fn benches(criterion: &mut Criterion) {
    for size in &SIZES {
        let corpus = zipfian_corpus(size.n_words, size.n_sentences, 1);
        let clusters = clusters(&corpus, size.n_clusters);
        let params = Hmm::params()
            .n_states(size.n_states)
            .n_clusters(size.n_clusters)
            .dim(size.dim)
            .state_dropout(0.5)
            .epochs(1_000_000)
            .batch_tokens(1024);
        let mut group = criterion.benchmark_group(size.name);
        group.sample_size(10);

        group.throughput(Throughput::Elements(params.batch_tokens as u64));
        let scalar = params
            .clone()
            .parameterization(Parameterization::Scalar)
            .learning(Learning::Gradient)
            .n_states(size.n_states.min(4096));
        let uniform = params.clone().constraint(Constraint::Uniform);
        for (name, params) in
            [("neural step", &params), ("uniform step", &uniform), ("scalar step", &scalar)]
        {
            group.bench_function(name, |bench| {
                bench.iter_custom(|n| time(params, &corpus, &clusters, n, |_| true));
            });
        }

        group.throughput(Throughput::Elements(corpus.sentences.n_tokens() as u64));
        let em = scalar.learning(Learning::Em).state_dropout(0.0);
        group.bench_function("Baum–Welch pass", |bench| {
            bench.iter_custom(|n| time(&em, &corpus, &clusters, n, |has_metrics| has_metrics));
        });
        group.finish();
    }
}

/// Clusters of equal size, without `<eos>`.
fn clusters(corpus: &Corpus, n_clusters: usize) -> WordClusters {
    let n_words = corpus.lexicon.vocab.len();
    let cluster = |word: usize| (word > WordId::EOS.index()).then_some((word % n_clusters) as u32);
    let paths = (0..n_clusters).map(|cluster| format!("{cluster:016b}")).collect();
    WordClusters::new((0..n_words).map(cluster).collect(), paths).expect("valid clusters")
}

/// The time of `n` steps after the first one. `is_step` selects the reports that end a step, given whether they have
/// metrics.
fn time(
    params: &HmmParams,
    corpus: &Corpus,
    clusters: &WordClusters,
    n: u64,
    is_step: impl Fn(bool) -> bool,
) -> Duration {
    let (mut n_steps, mut started, mut taken) = (0, Instant::now(), Duration::ZERO);
    let builder = params.clone().with(HmmInputs::default().clusters(clusters));
    let builder = builder.watch(|progress| {
        if !is_step(!progress.metrics.is_empty()) {
            return ControlFlow::Continue(());
        }
        n_steps += 1;
        if n_steps == 1 {
            started = Instant::now();
        }
        taken = started.elapsed();
        if n_steps > n { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(builder.fit(corpus).is_err(), "the watcher stops the training");
    taken
}

criterion_group!(fit, benches);
criterion_main!(fit);
