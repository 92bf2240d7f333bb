//! Clustering with both algorithms, on synthetic Zipfian text.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use latens_model::Fit;
use latens_model_brown::{Algorithm, Brown};
use latens_testkit::zipfian_corpus;

/// Sizes of text and clustering; `paper` is about the size of the Penn Treebank.
const SIZES: [Size; 3] = [
    Size { name: "tiny", n_words: 500, n_sentences: 500, n_clusters: 20 },
    Size { name: "small", n_words: 2_000, n_sentences: 5_000, n_clusters: 50 },
    Size { name: "paper", n_words: 10_000, n_sentences: 42_000, n_clusters: 128 },
];

struct Size {
    name: &'static str,
    n_words: usize,
    n_sentences: usize,
    n_clusters: usize,
}

fn benches(criterion: &mut Criterion) {
    for Size { name, n_words, n_sentences, n_clusters } in SIZES {
        let corpus = zipfian_corpus(n_words, n_sentences, 1);
        let mut group = criterion.benchmark_group(name);
        group.sample_size(10);
        group.throughput(Throughput::Elements(corpus.lexicon.vocab.len() as u64));
        for (name, algorithm) in [("brown", Algorithm::Brown), ("exchange", Algorithm::Exchange)] {
            let params = Brown::params().n_clusters(n_clusters).algorithm(algorithm);
            let params = params.n_iterations(5);
            let fit = || params.clone().fit(&corpus).expect("fitting succeeds");
            group.bench_function(name, |bench| bench.iter(fit));
        }
        group.finish();
    }
}

criterion_group!(fit, benches);
criterion_main!(fit);
