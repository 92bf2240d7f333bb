//! Measures the time per iteration of Gaussian LDA for large vocabularies and long vectors, on generated documents that
//! follow Zipf's law, with as many clusters of vectors as topics.
//!
//! `cargo run --release -p latens-model-lda --example topics_scale -- [TOKENS] [WORDS] [DIM] [TOPICS] [ITERATIONS] [SAMPLER]`
#![allow(clippy::print_stdout)]

use latens_corpus::{DocumentCorpus, Format, Inputs, Preprocessing, Vocab, VocabLimits};
use latens_math::Rng;
use latens_model::{Fit, WordVectors};
use latens_model_lda::{GldaInputs, GldaParams, Sampler};
use std::fmt::Write;
use std::ops::ControlFlow;
use std::time::Instant;

/// Number of tokens per document.
const LENGTH: usize = 200;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut next =
        |usual: usize| arguments.next().map_or(usual, |number| number.parse().expect("a number"));
    let (n_tokens, n_words, dim) = (next(2_000_000), next(100_000), next(300));
    let (n_topics, n_iterations) = (next(200), next(3));
    let sampler = match arguments.next().as_deref() {
        None => Sampler::Auto,
        Some("alias") => Sampler::Alias,
        Some("mh") => Sampler::Mh,
        Some("parallel") => Sampler::Parallel,
        Some(other) => panic!("unknown sampler `{other}`"),
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("text");
    std::fs::write(&path, text(n_tokens, n_words)).expect("the text can be written");
    let inputs = Inputs::new([path]).format(Format::Lines);
    let (preprocessing, limits) = (Preprocessing::default(), VocabLimits::default());
    let corpus =
        DocumentCorpus::read(&inputs, &preprocessing, &limits).expect("the text can be read");
    let vectors = vectors(&corpus.lexicon.vocab, dim, n_topics);
    let (n_tokens, n_words) = (corpus.documents.n_tokens(), corpus.lexicon.vocab.len());
    println!("{n_tokens} tokens, {n_words} words, {dim} dimensions");
    let params =
        GldaParams::default().n_topics(n_topics).n_iterations(n_iterations).sampler(sampler);
    let started = Instant::now();
    let watch = |progress: &latens_model::Progress<'_>| {
        let seconds = started.elapsed().as_secs_f64();
        println!("{seconds:.1} s: iteration {}, {:?}", progress.done, progress.metrics);
        ControlFlow::Continue(())
    };
    let inputs = GldaInputs::default().vectors(&vectors);
    let model = params.with(inputs).watch(watch).fit(&corpus);
    let model = model.expect("the model can be fitted");
    println!("sampler {}", model.facts()["sampler"]);
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        let peak = status.lines().find(|line| line.starts_with("VmHWM"));
        println!("{}", peak.unwrap_or_default());
    }
}

/// Documents of words `w0`, `w1` …, where `w4` is one fifth as frequent as `w0`. All words occur at least once.
fn text(n_tokens: usize, n_words: usize) -> String {
    let mut rng = Rng::new(1);
    let mut text = String::new();
    for token in 0..n_tokens {
        let word = if token < n_words {
            token
        } else {
            // The inverse distribution function of a continuous Zipf law.
            ((n_words as f64).powf(rng.uniform()) as usize).min(n_words) - 1
        };
        let end = if token % LENGTH == LENGTH - 1 { '\n' } else { ' ' };
        write!(text, "w{word}{end}").expect("writing to a string cannot fail");
    }
    text
}

fn vectors(vocab: &Vocab, dim: usize, n_clouds: usize) -> WordVectors {
    let mut rng = Rng::new(2);
    let centers: Vec<f64> = (0..n_clouds * dim).map(|_| 0.5 * rng.normal()).collect();
    let mut values = vec![0.0; 2 * dim];
    for _ in 2..vocab.len() {
        let cloud = (rng.uniform() * n_clouds as f64) as usize;
        let center = &centers[cloud * dim..][..dim];
        values.extend(center.iter().map(|c| (c + 0.5 * rng.normal()) as f32));
    }
    WordVectors::new(dim, values).expect("finite numbers")
}
