//! Training time and memory for a large vocabulary, on synthetic Zipfian text that is generated while it is counted.
//!
//! `cargo run --release -p latens-model-lds --example scale -- [TOKENS] [WORDS] [DIM] [ITERATIONS] [SHARDS] [POWERS]`
//!
//! POWERS is the number of power iterations of the randomized decomposition. Each needs two products with the block
//! Hankel matrix, in addition to the two that are always needed.
#![allow(clippy::print_stdout)]

use latens_corpus::{Corpus, Lexicon, Preprocessing, Sentences, Vocab, VocabLimits, WordId};
use latens_counts::{Boundary, Budget, LagCounts};
use latens_math::Rng;
use latens_model::Fit;
use latens_model_lds::{Lds, LdsInputs};
use std::ops::ControlFlow;
use std::time::Instant;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|number| number.parse().expect("a number"));
    let mut next = |default: usize| arguments.next().unwrap_or(default);
    let (n_tokens, n_words) = (next(100_000_000), next(200_000));
    let (dim, n_iterations, n_shards) = (next(200), next(2), next(20));
    let power_iterations = next(2);
    let started = Instant::now();
    let counts = count(n_tokens, n_words, n_shards);
    let n_pairs: usize = counts.lags().iter().map(|lag| lag.nnz()).sum();
    println!(
        "counted {n_tokens} tokens in {:.1} s: {n_pairs} pairs{}",
        started.elapsed().as_secs_f64(),
        memory()
    );
    let params = Lds::params().dim(dim).n_iterations(n_iterations);
    let params = params.power_iterations(power_iterations);
    let mut last = Instant::now();
    let no_sentences = Sentences::from_words(Vec::<Vec<WordId>>::new());
    let corpus = Corpus { lexicon: counts.lexicon().clone(), sentences: no_sentences };
    let builder = params.with(LdsInputs::default().take_counts(counts)).watch(|progress| {
        let seconds = last.elapsed().as_secs_f64();
        let (phase, done, metrics) = (progress.phase, progress.done, progress.metrics);
        println!("{phase} {done}: {seconds:.1} s, {metrics:?}{}", memory());
        last = Instant::now();
        ControlFlow::Continue(())
    });
    let lds = builder.fit(&corpus).expect("the model can be fitted");
    println!("{:?}{}", lds.facts(), memory());
}

/// The memory in use, and the peak since the last call, where the system reports them.
fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |name: &str| -> Option<u64> {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    // Writing 5 resets the peak to the current use.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    match (of("VmRSS:"), of("VmHWM:")) {
        (Some(now), Some(most)) => {
            format!("; {} MB now, {} MB peak", now * 1024 / 1_000_000, most * 1024 / 1_000_000)
        }
        _ => String::new(),
    }
}

/// Counts shard by shard, so that memory never holds the whole text.
fn count(n_tokens: usize, n_words: usize, n_shards: usize) -> LagCounts {
    let cumulative: Vec<f64> = (1..=n_words)
        .scan(0.0, |sum, rank| {
            *sum += 1.0 / rank as f64;
            Some(*sum)
        })
        .collect();
    let names: Vec<String> = (0..n_words - 2).map(|i| format!("w{i}")).collect();
    let seen = names.iter().map(|name| (name.as_str(), 1)).chain([("<eos>", 1)]);
    let limits = VocabLimits::default();
    let vocab = Vocab::from_counts(seen, &limits);
    let lexicon = Lexicon::new(Preprocessing::default(), limits, vocab);
    let mut sum: Option<LagCounts> = None;
    for shard in 0..n_shards {
        let sentences = text(n_tokens / n_shards, &cumulative, shard as u64);
        let corpus = Corpus { lexicon: lexicon.clone(), sentences };
        let go_on = &mut |_| ControlFlow::Continue(());
        let budget = Budget::default();
        let part = LagCounts::of(&corpus, 7, Boundary::Stream, &budget, go_on).expect("counts");
        sum = Some(match sum {
            Some(sum) => LagCounts::merge(&[sum, part], &budget).expect("mergeable counts"),
            None => part,
        });
    }
    sum.expect("at least one shard")
}

/// Words that follow Zipf's law. Half of them depend on the previous word, which shifts their ranks.
fn text(n_tokens: usize, cumulative: &[f64], seed: u64) -> Sentences {
    let mut rng = Rng::stream(1, seed);
    let (n, total) = (cumulative.len(), cumulative[cumulative.len() - 1]);
    let mut before = 0;
    let mut word = || {
        let place = rng.uniform() * total;
        let rank = cumulative.partition_point(|&sum| sum < place).min(n - 1);
        let shifted = rng.uniform() < 0.5;
        before = if shifted { (rank + before % 50 * 7) % n } else { rank };
        WordId::from(2 + before % (n - 2))
    };
    let sentences = (0..n_tokens / 25).map(|_| (0..24).map(|_| word()).collect::<Vec<_>>());
    Sentences::from_words(sentences.collect::<Vec<_>>())
}
