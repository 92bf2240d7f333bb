//! Clustering by both algorithms, on made-up text of Zipfian words.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use latens_model::{Params, unwatched};
use latens_model_brown::{Algorithm, Brown, BrownParams};
use latens_testkit::zipfian_corpus;

/// Sizes by their number of words, sentences and clusters; `paper` is about the Penn Treebank.
const SIZES: [(&str, usize, usize, usize); 3] =
    [("tiny", 500, 500, 20), ("small", 2_000, 5_000, 50), ("paper", 10_000, 42_000, 128)];

fn benches(criterion: &mut Criterion) {
    for (name, n_words, n_sentences, n_clusters) in SIZES {
        let corpus = zipfian_corpus(n_words, n_sentences, 1);
        let mut group = criterion.benchmark_group(name);
        group.sample_size(10);
        group.throughput(Throughput::Elements(corpus.lexicon.vocab.len() as u64));
        for (name, algorithm) in [("brown", Algorithm::Brown), ("exchange", Algorithm::Exchange)] {
            let params = BrownParams { n_clusters, algorithm, n_iterations: 5 };
            let params = params.validate().expect("they are right");
            let fit = || Brown::fit(&params, &corpus, &mut unwatched).expect("it fits");
            group.bench_function(name, |bench| bench.iter(fit));
        }
        group.finish();
    }
}

criterion_group!(fit, benches);
criterion_main!(fit);
