//! Tables of a constraint, and the distribution of the next word under it: 4,096 hidden states in 16 clusters, a
//! vocabulary of 50,000 words, an automaton with 30 states, 32 words. On a CUDA device (`--features cuda`) also tables of
//! 32,768 states in 128 clusters.

use criterion::{Criterion, criterion_group, criterion_main};
use latens_control::{
    Alphabet, Constraint, Guide, Lengths, Lookahead, LookaheadOptions, NextWords,
};
use latens_corpus::{Corpus, Lexicon, Preprocessing, Sentences, Vocab, VocabLimits, WordId};
use latens_model::{Device, Fit, WordClusters};
use latens_model_hmm::{Expectations, Hmm, HmmInputs, Parameterization};
use std::hint::black_box;
use std::io::Write;

const N_WORDS: usize = 50_000;
const MAX_WORDS: usize = 32;

/// A model with random probabilities.
fn model(n_states: usize, n_clusters: usize, parameterization: Parameterization) -> Hmm {
    let words: Vec<String> = (2..N_WORDS).map(|word| format!("w{word}")).collect();
    let all = ["<unk>", "<eos>"].into_iter().chain(words.iter().map(String::as_str));
    let vocab = Vocab::from_parts(all, vec![1; N_WORDS]).expect("distinct words");
    let lexicon = Lexicon::new(Preprocessing::default(), VocabLimits::default(), vocab);
    let ids: Vec<WordId> = (0..N_WORDS).filter(|&word| word != 1).map(WordId::from).collect();
    let corpus = Corpus { lexicon, sentences: Sentences::from_words(ids.chunks(20)) };
    let of_word = |word: usize| (word > 1).then_some((word % n_clusters) as u32);
    let paths = (0..n_clusters).map(|cluster| format!("{cluster:07b}")).collect();
    let clusters = WordClusters::new((0..N_WORDS).map(of_word).collect(), paths);
    let clusters = clusters.expect("valid clusters");
    let params = Hmm::params()
        .n_states(n_states)
        .n_clusters(n_clusters)
        .parameterization(parameterization)
        .epochs(0);
    params.with(HmmInputs::default().clusters(&clusters)).fit(&corpus).expect("a model")
}

/// Every tenth word, in order: 29 phrases need 30 states.
fn constraint() -> Constraint {
    Constraint::contains_in_order((1..30).map(|i| format!("w{}", 10 * i)))
}

fn on_cpu(criterion: &mut Criterion) {
    let hmm = model(4096, 16, Parameterization::Scalar);
    let constraint = constraint();
    let automaton =
        constraint.compile(&Alphabet::Words(hmm.lexicon())).expect("an automaton").automaton;
    assert_eq!(automaton.n_states(), 30);
    let options = LookaheadOptions::new(Lengths { min: 0, max: MAX_WORDS });
    let mut group = criterion.benchmark_group("control");
    group.sample_size(10);
    group.bench_function("compile", |bencher| {
        bencher.iter(|| black_box(constraint.compile(&Alphabet::Words(hmm.lexicon()))));
    });
    group.bench_function("tables", |bencher| {
        bencher.iter(|| black_box(Lookahead::new(&hmm, automaton.clone(), options)));
    });
    let lookahead = Lookahead::new(&hmm, automaton.clone(), options).expect("tables");
    let guide = Guide::new(&hmm, &lookahead);
    let (start, mut next) = (guide.start(), NextWords::default());
    group.bench_function("word", |bencher| {
        bencher.iter(|| {
            let mut reading = start.clone();
            guide.next_words(&reading, &mut next);
            guide.read(&mut reading, WordId(100));
            black_box((&reading, &next));
        });
    });
    group.finish();
}

fn on_cuda(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("control on cuda");
    group.sample_size(10);
    for (n_states, n_clusters) in [(4096, 16), (32768, 128)] {
        let hmm = model(n_states, n_clusters, Parameterization::Neural);
        let expectations = match Expectations::on(&hmm, Device::Cuda) {
            Ok(expectations) => expectations,
            Err(error) => {
                let _ =
                    writeln!(std::io::stderr(), "skipping the tables on a CUDA device: {error}");
                return;
            }
        };
        let alphabet = Alphabet::Words(hmm.lexicon());
        let automaton = constraint().compile(&alphabet).expect("an automaton").automaton;
        let options = LookaheadOptions::new(Lengths { min: 0, max: MAX_WORDS });
        group.bench_function(format!("tables of {n_states} states"), |bencher| {
            bencher.iter(|| black_box(Lookahead::with(&expectations, automaton.clone(), options)));
        });
    }
    group.finish();
}

criterion_group!(control, on_cpu, on_cuda);
criterion_main!(control);
