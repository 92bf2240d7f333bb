//! Throughput of every sampler on generated documents.

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use latens_corpus::{
    DocumentCorpus, Documents, Format, Inputs, Lexicon, Preprocessing, VocabLimits,
};
use latens_math::Rng;
use latens_model::{Fit, WordVectors};
use latens_model_lda::{GldaInputs, GldaParams, LdaParams, LdaSampler, Sampler};
use std::fmt::Write;

/// Number of words per theme, and number of tokens per document.
const WORDS: usize = 100;
const LENGTH: usize = 80;
/// Dimension of the vectors.
const DIM: usize = 20;
/// Enough iterations that documents have few topics, as after convergence.
const N_ITERATIONS: usize = 10;

fn benches(criterion: &mut Criterion) {
    for (name, n_documents, n_topics) in [("tiny", 1_000, 50), ("small", 5_000, 1_000)] {
        let corpus = themes(n_documents, n_topics);
        let mut group = criterion.benchmark_group(format!("lda, {name}"));
        begin(&mut group, &corpus.documents, N_ITERATIONS);
        for sampler in [LdaSampler::Dense, LdaSampler::Sparse] {
            let n_iterations = N_ITERATIONS;
            let params =
                LdaParams::default().n_topics(n_topics).n_iterations(n_iterations).sampler(sampler);
            let fit = || params.clone().fit(&corpus).expect("the model can be fitted");
            group.bench_function(format!("{sampler:?}"), |bench| bench.iter(fit));
        }
    }
    let corpus = themes(100, 10);
    let vectors = vectors(&corpus.lexicon);
    let inputs = GldaInputs::default().vectors(&vectors);
    let mut group = criterion.benchmark_group("glda, tiny");
    begin(&mut group, &corpus.documents, 2);
    for sampler in [
        Sampler::Naive,
        Sampler::Cholesky,
        Sampler::Alias,
        Sampler::Exact,
        Sampler::Mh,
        Sampler::Parallel,
    ] {
        let params = GldaParams::default().n_topics(10).n_iterations(2).sampler(sampler);
        let fit = || params.clone().with(inputs).fit(&corpus).expect("the model can be fitted");
        group.bench_function(format!("{sampler:?}"), |bench| bench.iter(fit));
    }
}

fn begin(group: &mut BenchmarkGroup<'_, WallTime>, documents: &Documents, n_iterations: usize) {
    group.sample_size(10);
    group.throughput(Throughput::Elements((n_iterations * documents.n_tokens()) as u64));
}

/// Documents of three themes each, whose words follow Zipf's law.
fn themes(n_documents: usize, n_themes: usize) -> DocumentCorpus {
    let (mut rng, mut text) = (Rng::new(1), String::new());
    for _ in 0..n_documents {
        let own: [usize; 3] = std::array::from_fn(|_| (rng.uniform() * n_themes as f64) as usize);
        for _ in 0..LENGTH {
            let theme = own[(rng.uniform() * 3.0) as usize];
            let word = (WORDS as f64).powf(rng.uniform()) as usize;
            write!(text, "w{theme}x{word} ").expect("writing to a string cannot fail");
        }
        text.push('\n');
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("text");
    std::fs::write(&path, text).expect("the text can be written");
    let inputs = Inputs::new([path]).format(Format::Lines);
    DocumentCorpus::read(&inputs, &Preprocessing::default(), &VocabLimits::default())
        .expect("the text can be read")
}

/// Vectors in which words of the same theme are close to each other.
fn vectors(lexicon: &Lexicon) -> WordVectors {
    let mut values = Vec::new();
    let mut noise = Rng::new(2);
    for word in lexicon.vocab.words() {
        let theme = word[1..].split('x').next().and_then(|number| number.parse().ok());
        let mut place = Rng::new(theme.unwrap_or(0));
        values.extend((0..DIM).map(|_| (2.0 * place.normal() + noise.normal()) as f32));
    }
    WordVectors::new(DIM, values).expect("finite numbers")
}

criterion_group!(fit, benches);
criterion_main!(fit);
