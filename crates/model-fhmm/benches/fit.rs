//! One epoch of four batches, and inference, on synthetic Zipfian text.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use latens_model::Fit;
use latens_model_fhmm::Fhmm;
use latens_testkit::zipfian_corpus;

/// Name and numbers of layers, words and sentences, with 10 states per layer; `paper` has the layers and words of Nepal
/// and Yates (2013).
const SIZES: [(&str, usize, usize, usize); 3] =
    [("tiny", 2, 200, 100), ("small", 3, 3_000, 1_000), ("paper", 5, 40_000, 4_000)];

fn benches(criterion: &mut Criterion) {
    for (name, n_layers, n_words, n_sentences) in SIZES {
        let corpus = zipfian_corpus(n_words, n_sentences, 1);
        let mut group = criterion.benchmark_group(name);
        group.sample_size(10);
        group.throughput(Throughput::Elements(corpus.sentences.n_tokens() as u64));
        let params = Fhmm::params().n_layers(n_layers).epochs(1).min_count(1);
        let params = params.batch_sentences(n_sentences / 4);
        let fit = || params.clone().fit(&corpus).expect("fitting succeeds");
        group.bench_function("fit", |bench| bench.iter(fit));
        let model = fit();
        let posteriors = || {
            let sentences = corpus.sentences.iter().take(50);
            sentences.map(|sentence| model.posterior_of(sentence).n_rows()).sum::<usize>()
        };
        group.bench_function("posterior of 50 sentences", |bench| bench.iter(posteriors));
        group.finish();
    }
}

criterion_group!(fit, benches);
criterion_main!(fit);
