//! `latens encode` with the real program.

mod common;

use common::Folder;
use std::fs;

const HMM: &str = "train hmm train.txt --tokenize words --lowercase --min-count 2 --n-states 32 \
                   --n-clusters 4 --dim 8 --epochs 1 -o m.hmm";

fn trained() -> Folder {
    let folder = Folder::with_embedded_corpus();
    folder.json(HMM);
    folder.write("text", "The soil, the zyzzyva!\n\nsoil\n");
    folder
}

/// A word and its columns.
type SparseRow = (String, Vec<(usize, f32)>);

/// The rows of a `.tsv`; `None` for the end of a sentence.
fn tsv(text: &str) -> Vec<Option<SparseRow>> {
    let entry = |entry: &str| {
        let (column, value) = entry.split_once(':').unwrap();
        (column.parse().unwrap(), value.parse().unwrap())
    };
    let row = |line: &str| {
        let mut cells = line.split('\t');
        let word = cells.next().unwrap().to_owned();
        (!line.is_empty()).then(|| (word, cells.map(entry).collect()))
    };
    text.lines().map(row).collect()
}

/// The rows of a `.npy` of 32-bit numbers.
fn npy(bytes: &[u8], shape: (usize, usize)) -> Vec<Vec<f32>> {
    let length = usize::from(u16::from_le_bytes(bytes[8..10].try_into().unwrap()));
    let header = std::str::from_utf8(&bytes[10..10 + length]).unwrap();
    assert!(header.contains(&format!("'shape': ({}, {}", shape.0, shape.1)), "{header}");
    let values = bytes[10 + length..].chunks_exact(4);
    let values: Vec<f32> = values.map(|v| f32::from_le_bytes(v.try_into().unwrap())).collect();
    assert_eq!(values.len(), shape.0 * shape.1);
    values.chunks(shape.1).map(<[f32]>::to_vec).collect()
}

#[test]
fn both_formats_have_the_same_features_of_every_kind() {
    let folder = trained();
    folder.json(
        "train brown train.txt --tokenize words --lowercase --min-count 2 --n-clusters 8 -o m.brown",
    );
    let kinds = [
        ("m.hmm", "state", Some(32)),
        ("m.hmm", "cluster", Some(4)),
        ("m.hmm", "posterior", Some(32)),
        ("m.hmm", "cluster-posterior", Some(4)),
        ("m.brown", "paths", None),
    ];
    for (model, kind, dim) in kinds {
        let wrote = folder.json(&format!("encode {model} text --features {kind} -o f.tsv"));
        assert_eq!(wrote, folder.json(&format!("encode {model} text --features {kind} -o f.npy")));
        assert_eq!((&wrote["tokens"], &wrote["features"]), (&7.into(), &kind.into()));
        let columns = wrote["dim"].as_u64().unwrap() as usize;
        assert!(dim.is_none_or(|dim| dim == columns), "{wrote}");
        let text = fs::read_to_string(folder.path().join("f.tsv")).unwrap();
        let dense = npy(&fs::read(folder.path().join("f.npy")).unwrap(), (7, columns));
        let lines = tsv(&text);
        let words: Vec<&str> =
            lines.iter().map(|row| row.as_ref().map_or("", |(word, _)| word)).collect();
        // A word that the model does not know is shown as it was written; the second sentence is empty.
        assert_eq!(words, ["the", "soil", ",", "the", "zyzzyva", "!", "", "", "soil", ""]);
        for ((_, sparse), dense) in lines.iter().flatten().zip(dense) {
            assert!(!sparse.is_empty());
            let mut expected = vec![0.0; columns];
            sparse.iter().for_each(|&(column, value)| expected[column] = value);
            assert_eq!(dense, expected);
            let sum: f32 = dense.iter().sum();
            assert!(kind == "paths" || (sum - 1.0).abs() < 1e-5, "{sum}");
        }
    }
}

#[test]
fn without_an_output_features_go_to_standard_output() {
    let folder = trained();
    let ran = folder.run("encode m.hmm text");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    folder.json("encode m.hmm text --features state -o f.tsv");
    assert_eq!(ran.stdout, fs::read_to_string(folder.path().join("f.tsv")).unwrap());
    assert!(ran.stderr.contains("7 words, 32 columns (state)"), "{}", ran.stderr);
    folder.run("encode m.hmm text --json").assert_refused("`--json` needs `-o`");
}

#[test]
fn rows_are_in_the_order_of_the_text_for_any_number_of_threads() {
    let folder = trained();
    let encode = |threads: usize| {
        let flags = "--features posterior -q";
        folder.run(&format!("encode m.hmm train.txt {flags} --threads {threads}")).stdout
    };
    let one = encode(1);
    assert!(one.len() > 1 << 20, "{}", one.len());
    assert!(one == encode(3));
}

#[test]
fn models_without_the_features_are_rejected() {
    let folder = trained();
    let ran = folder.run("encode m.hmm text --features states -o f.npy");
    ran.assert_refused("unknown kind of features `states`");
    for kind in ["`state`", "`cluster`", "`posterior`", "`cluster-posterior`"] {
        assert!(ran.stderr.contains(kind), "{}", ran.stderr);
    }
    folder.json("train ngram text -o m.ngram");
    folder.run("encode m.ngram text -o f.npy").assert_refused("which has no features of words");
    folder.run("encode m.hmm text -o f.csv").assert_refused("cannot infer a format from `f.csv`");
    folder.run("encode m.hmm text -o absent/f.npy").assert_refused("cannot write `absent/f.npy`");
    folder.run("encode text text -o f.npy").assert_refused("`text` is not a latens model");
    folder.run("encode m.hmm missing -o f.npy").assert_refused("cannot read `missing`");
    fs::rename(folder.path().join("text"), folder.path().join("text.tsv")).unwrap();
    folder.run("encode m.hmm text.tsv -o text.tsv").assert_refused("both input and output");
    assert!(!folder.names().iter().any(|name| name.starts_with("f.")), "{:?}", folder.names());
}

#[test]
fn a_matrix_too_large_for_the_disk_is_rejected() {
    let folder = Folder::new();
    folder.write("train", "a b c d\n".repeat(3));
    folder.json(
        "train hmm train --constraint none --n-states 4096 --parameterization scalar --epochs 0 -o m",
    );
    // 2^20 words of 4,096 numbers are too many by a sentence.
    folder.write("text", "a b c d ".repeat((1 << 18) + 1));
    let ran = folder.run("encode m text --features state -o f.npy");
    ran.assert_refused("needs 16 GiB");
    assert!(ran.stderr.contains("hint: write `.tsv`"), "{}", ran.stderr);
    assert_eq!(folder.names(), ["m", "text", "train"]);
}

#[test]
fn unknown_words_are_reported() {
    let folder = Folder::new();
    folder.write("train", "a b c d\n".repeat(3));
    // One state a word, and nothing leads from `a` to itself.
    folder.json(
        "train hmm train --n-states 4 --n-clusters 4 --parameterization scalar --prior 0 --epochs 1 -o m",
    );
    folder.write("text", "a b c d\na a\n");
    let ran = folder.run("encode m text");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("2 words have no features"), "{}", ran.stderr);
    assert!(ran.stdout.ends_with("\n\na\na\n\n"), "{}", ran.stdout);
    folder.write("text", "a b\na new c\n");
    folder.run("encode m text").assert_refused("does not know the word `new`");
}
