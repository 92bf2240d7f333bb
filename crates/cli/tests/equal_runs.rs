//! Equal commands write equal files, byte for byte.

mod common;

use common::Folder;
use latens::corpus::embedded::{self, Split};
use std::fs;

#[test]
fn model_files_of_equal_runs_are_equal() {
    let folder = Folder::new();
    for (name, n_lines) in [("train.txt", 80), ("valid.txt", 20)] {
        let text = embedded::text(Split::Train);
        folder.write(name, text.lines().take(n_lines).collect::<Vec<_>>().join("\n"));
    }
    let rows = "the\tD\ncat\tN\nsleeps\tV\n\na\tD\ndog\tN\nsleeps\tV\n\n".repeat(10);
    folder.write("tagged.conll", rows);
    folder.json("train word2vec train.txt --dim 8 --epochs 1 --threads 1 -o vectors");
    for command in [
        "train brown train.txt --n-clusters 5",
        "train brown train.txt --n-clusters 5 --algorithm exchange",
        "train ff train.txt --dim 8 --epochs 1 --valid valid.txt",
        "train fhmm train.txt --n-layers 2 --n-states 3 --epochs 1 --valid valid.txt",
        "train glda train.txt --vectors vectors --n-topics 3 --n-iterations 3",
        "train hmm train.txt --n-states 8 --n-clusters 4 --dim 8 --epochs 1 --valid valid.txt",
        "train hmm train.txt --constraint none --n-states 4 --parameterization scalar --epochs 2",
        "train lda train.txt --n-topics 3 --n-iterations 3",
        "train lds train.txt --dim 4 --n-iterations 2 --valid valid.txt",
        "train lstm train.txt --dim 8 --epochs 1 --batch-size 4 --valid valid.txt",
        "train ngram train.txt --valid valid.txt",
        "train rnn train.txt --dim 8 --epochs 1 --batch-size 4 --valid valid.txt",
        "train word2vec train.txt --dim 8 --epochs 1",
        "tag train tagged.conll --column 2 --encoder vectors --n-iterations 3",
        "tag train tagged.conll --column 2 --optimizer perceptron --epochs 2",
    ] {
        // Threads of word2vec update vectors without locks.
        let threads = if command.contains("word2vec") { 1 } else { 3 };
        folder.json(&format!("{command} --threads 1 -o first"));
        folder.json(&format!("{command} --threads {threads} -o second"));
        let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
        let equal = fs::read(first).unwrap() == fs::read(second).unwrap();
        let [first, second] =
            ["first", "second"].map(|name| folder.json(&format!("inspect {name}")));
        assert!(equal, "{command}: {first} {second}");
    }
}
