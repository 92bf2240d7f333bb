//! Speed of counting with one thread and with two.
//!
//! The text is synthetic with Zipfian word frequencies. `LATENS_BENCH_TEXT=FILE` adds a real text, which
//! must be tokenized and have one sentence per line.

use criterion::{
    BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main,
};
use latens_corpus::{Corpus, Lexicon, Preprocessing, Sentences, Vocab, VocabLimits, WordId};
use latens_counts::{Boundary, Budget, LagCounts, NgramCounts};
use latens_math::Rng;
use std::env;
use std::ops::ControlFlow;

/// Name, number of tokens, number of words. `small` has the size of the Penn Treebank, `paper` of
/// WikiText-2.
const SIZES: [(&str, usize, usize); 3] =
    [("tiny", 10_000, 1_000), ("small", 930_000, 10_000), ("paper", 2_090_000, 33_278)];
const N_THREADS: [usize; 2] = [1, 2];

fn corpora() -> Vec<(String, Corpus)> {
    let synthetic =
        SIZES.map(|(name, n_tokens, n_words)| (name.to_owned(), zipf(n_tokens, n_words)));
    let real = env::var_os("LATENS_BENCH_TEXT")
        .map(|path| ("text".to_owned(), Corpus::read_file(path).unwrap()));
    synthetic.into_iter().chain(real).collect()
}

/// Independent words with frequencies proportional to 1 / (rank + 2.7), in sentences of 22 words.
fn zipf(n_tokens: usize, n_words: usize) -> Corpus {
    let mut rng = Rng::new(1);
    let mut sum = 0.0;
    let sums: Vec<f64> = (2..n_words)
        .map(|rank| {
            sum += 1.0 / (rank as f64 + 0.7);
            sum
        })
        .collect();
    let mut word = || {
        let place = sum * rng.uniform();
        WordId::from(2 + sums.partition_point(|&below| below < place).min(sums.len() - 1))
    };
    let ids: Vec<WordId> = (0..n_tokens).map(|_| word()).collect();
    let limits = VocabLimits::default();
    let words: Vec<String> = (2..n_words).map(|rank| format!("w{rank}")).collect();
    let vocab = Vocab::from_counts(words.iter().map(|word| (&word[..], 1)), &limits);
    let lexicon = Lexicon::new(Preprocessing::default(), limits, vocab);
    Corpus { lexicon, sentences: Sentences::from_words(ids.chunks(22)) }
}

fn bench<T: Send>(
    criterion: &mut Criterion,
    group: &str,
    corpora: &[(String, Corpus)],
    count: impl Fn(&Corpus) -> T + Sync,
) {
    let mut group = criterion.benchmark_group(group);
    group.sample_size(20).sampling_mode(SamplingMode::Flat);
    for (name, corpus) in corpora {
        group.throughput(Throughput::Elements(corpus.sentences.n_tokens() as u64));
        for n_threads in N_THREADS {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            let id = BenchmarkId::new(name, format!("{n_threads} threads"));
            group.bench_function(id, |bencher| {
                pool.install(|| bencher.iter_with_large_drop(|| count(corpus)))
            });
        }
    }
    group.finish();
}

fn count(criterion: &mut Criterion) {
    let corpora = corpora();
    let budget = Budget::default();
    let go_on = |_| ControlFlow::Continue(());
    bench(criterion, "5-grams", &corpora, |corpus| {
        let vocab = &corpus.lexicon.vocab;
        NgramCounts::of(&corpus.sentences, vocab, 5, &budget, &mut { go_on }).unwrap()
    });
    bench(criterion, "7 lags", &corpora, |corpus| {
        LagCounts::of(corpus, 7, Boundary::Stream, &budget, &mut { go_on }).unwrap()
    });
}

criterion_group!(benches, count);
criterion_main!(benches);
