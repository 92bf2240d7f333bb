//! Speed of reading text: the embedded corpus, repeated.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use latens_corpus::embedded::{Split, text};
use latens_corpus::{Corpus, Inputs, Preprocessing, Tokenize, VocabLimits};

/// Names of sizes, and how often the training text is repeated.
const SIZES: [(&str, usize); 3] = [("tiny", 1), ("small", 10), ("paper", 50)];

fn benches(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("cannot create a temporary folder");
    for (name, times) in SIZES {
        let path = folder.path().join(name);
        let content = text(Split::Train).repeat(times);
        std::fs::write(&path, &content).expect("cannot write the text");
        let inputs = Inputs::new([path]);
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Bytes(content.len() as u64));
        for (what, tokenize) in [("whitespace", Tokenize::Whitespace), ("words", Tokenize::Words)] {
            let preprocessing = Preprocessing::default().tokenize(tokenize);
            group.bench_function(what, |bench| {
                bench.iter(|| {
                    Corpus::read(&inputs, &preprocessing, &VocabLimits::default())
                        .expect("cannot read the text")
                });
            });
        }
        group.finish();
    }
}

criterion_group!(encode, benches);
criterion_main!(encode);
