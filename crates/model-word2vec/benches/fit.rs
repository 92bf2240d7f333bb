//! One epoch of both algorithms on synthetic Zipfian text.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use latens_model::Fit;
use latens_model_word2vec::{Algorithm, Word2vec};
use latens_testkit::zipfian_corpus;

/// Name, number of words and number of sentences; `paper` has about the size of the Penn Treebank.
const SIZES: [(&str, usize, usize); 3] =
    [("tiny", 500, 500), ("small", 5_000, 10_000), ("paper", 10_000, 100_000)];

fn benches(criterion: &mut Criterion) {
    for (name, n_words, n_sentences) in SIZES {
        let corpus = zipfian_corpus(n_words, n_sentences, 1);
        let mut group = criterion.benchmark_group(name);
        group.sample_size(10);
        group.throughput(Throughput::Elements(corpus.sentences.n_tokens() as u64));
        for (name, algorithm) in [("cbow", Algorithm::Cbow), ("skip-gram", Algorithm::SkipGram)] {
            let params = Word2vec::params().algorithm(algorithm).epochs(1);
            let fit = || params.clone().fit(&corpus).expect("fitting succeeds");
            group.bench_function(name, |bench| bench.iter(fit));
        }
        group.finish();
    }
}

criterion_group!(fit, benches);
criterion_main!(fit);
