//! Counting, estimation and scoring on synthetic Zipfian text.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use latens_corpus::Corpus;
use latens_counts::Budget;
use latens_model::{LanguageModel, Params, unwatched};
use latens_model_ngram::Ngram;
use latens_testkit::zipfian_corpus;

/// Name, number of words and number of sentences; `paper` has about the size of the Penn Treebank.
const SIZES: [(&str, usize, usize); 3] =
    [("tiny", 1_000, 500), ("small", 5_000, 5_000), ("paper", 10_000, 42_000)];

fn benches(criterion: &mut Criterion) {
    for (name, n_words, n_sentences) in SIZES {
        let corpus = zipfian_corpus(n_words, n_sentences, 1);
        let params = Ngram::params().validate().expect("the defaults are valid");
        let mut group = criterion.benchmark_group(name);
        group.sample_size(10);
        group.throughput(Throughput::Elements(corpus.sentences.n_tokens() as u64));
        let count = |corpus: &Corpus| {
            Ngram::count(&params, corpus, &Budget::default(), &mut unwatched)
                .expect("counting succeeds")
        };
        group.bench_function("count", |bench| bench.iter(|| count(&corpus)));
        let counts = count(&corpus);
        group.bench_function("estimate", |bench| {
            bench.iter_batched(
                || (),
                |()| Ngram::from_counts(&params, &corpus.lexicon, &counts),
                BatchSize::LargeInput,
            );
        });
        let model = Ngram::from_counts(&params, &corpus.lexicon, &counts).unwrap();
        group.bench_function("score", |bench| {
            bench.iter(|| {
                let mut scorer = model.scorer();
                corpus.sentences.tokens().iter().map(|&word| scorer.read(word)).sum::<f64>()
            });
        });
        group.finish();
    }
}

criterion_group!(fit, benches);
criterion_main!(fit);
