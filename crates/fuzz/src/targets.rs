//! The fuzz targets: ordinary functions of bytes.
//!
//! Nothing here may fail because of the bytes. A panic is a defect of the reader, or of what uses the result.

use crate::forge;
use crate::outline::Outline;
use crate::scratch::{file, path};
use crate::trainings::TRAININGS;
use crate::use_counts::open_container;
use crate::use_model::{open_model, use_model, use_vectors};
use crate::use_shards::RUNS;
use crate::use_text::{read_sentences, read_text};
use latens::brown::Brown;
use latens::corpus::{Field, Format, Inputs, Invalid, Lexicon, Preprocessing, TokenNames};
use latens::model::compat::{self, TextFormat, VectorsError, npy, read_binary, write_binary};
use latens::model::{Checkpoint, WordClusters, WordVectors};
use latens::ngram::Ngram;
use std::ops::ControlFlow;

/// A fuzz target.
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Reads the bytes, and uses what the reader accepts.
    pub run: fn(&[u8]),
    /// Whether inputs are outlines, of which single values should change.
    pub takes_outlines: bool,
}

const fn target(name: &'static str, run: fn(&[u8])) -> Target {
    Target { name, run, takes_outlines: false }
}

/// Every target.
pub const TARGETS: &[Target] = &[
    target("arpa", arpa),
    target("clusters", clusters),
    Target { takes_outlines: true, ..target("container_arrays", container_arrays) },
    target("container_file", container_file),
    Target { takes_outlines: true, ..target("model_arrays", model_arrays) },
    target("model_file", model_file),
    Target { takes_outlines: true, ..target("resume", resume) },
    Target { takes_outlines: true, ..target("shards", shards) },
    target("text_compressed", text_compressed),
    target("text_conll", |data| read_text(Format::Conll, data)),
    target("text_conllu", |data| read_text(Format::Conllu, data)),
    target("text_docs", text_docs),
    target("text_jsonl", |data| read_text(Format::Jsonl, data)),
    target("text_lines", |data| read_text(Format::Lines, data)),
    target("token_ids", token_ids),
    target("vectors_binary", vectors_binary),
    target("vectors_npy", vectors_npy),
    target("vectors_text", vectors_text),
    target("vocab", vocab),
];

/// The target of this name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// A language model in the ARPA format. What is read can be written, and read again.
fn arpa(data: &[u8]) {
    let read = |mut text: &[u8]| Ngram::read_arpa(&mut text, &Preprocessing::default());
    let Ok(model) = read(data) else { return };
    let mut text = Vec::new();
    model.write_arpa(&mut text).expect("what was read can be written");
    let again = read(&text).expect("what was written can be read");
    assert_eq!(again.n_ngrams(), model.n_ngrams());
    use_model(&model);
}

/// Word clusters in the `paths` format. What is read can be written, and read again.
fn clusters(data: &[u8]) {
    let read = |mut text: &[u8]| WordClusters::read_paths(&mut text, &Preprocessing::default());
    let written = |lexicon: &Lexicon, clusters: &WordClusters| {
        let mut text = Vec::new();
        clusters.write_paths(&lexicon.vocab, &mut text).expect("a vector takes any bytes");
        text
    };
    let Ok((lexicon, clusters)) = read(data) else { return };
    let text = written(&lexicon, &clusters);
    let (same_lexicon, same_clusters) = read(&text).expect("what was written can be read");
    assert_eq!(written(&same_lexicon, &same_clusters), text);
    if let Ok(model) = Brown::from_clusters(lexicon, clusters) {
        use_model(&model);
    }
}

/// An encoded text or a file of counts that is complete, with any header and any arrays.
fn container_arrays(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        open_container(&Outline::parse(text).container());
    }
}

/// An encoded text or a file of counts: the bytes as they are, then as header and arrays with a valid checksum.
fn container_file(data: &[u8]) {
    open_container(data);
    let (header, arrays) = forge::header_and_arrays(data);
    open_container(&forge::container(header, arrays));
}

/// A model file or checkpoint that is complete, with any header and any arrays.
fn model_arrays(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        open_model(&Outline::parse(text).model());
    }
}

/// A model file or checkpoint: the bytes as they are, then as header and arrays with valid checksums.
fn model_file(data: &[u8]) {
    open_model(data);
    let (header, arrays) = forge::header_and_arrays(data);
    open_model(&forge::model(header, arrays));
}

/// Training that resumes from a checkpoint. The first line names the training, the rest is the checkpoint's outline.
fn resume(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (name, outline) = text.split_once('\n').unwrap_or_default();
    let Some(training) = TRAININGS.iter().find(|training| training.name == name) else { return };
    let path = file("resume", &Outline::parse(outline).model());
    let Ok(checkpoint) = Checkpoint::open(path) else { return };
    // A training that makes no progress must not go on forever.
    let mut n_reports = 0;
    let model = (training.fit)(Some(&checkpoint), &mut |progress| {
        n_reports += 1;
        assert!(n_reports < 10_000, "training does not end");
        if let Some(checkpoint) = progress.checkpoint {
            let _ = checkpoint();
        }
        ControlFlow::Continue(())
    });
    if let Ok(model) = model {
        use_model(&*model);
    }
}

/// A broadcast or statistics of a run from shards. The first line has the kind of model, and `broadcast` or the round of
/// the statistics; the rest is the outline of the file.
fn shards(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (first, outline) = text.split_once('\n').unwrap_or_default();
    let (kind, what) = first.split_once(' ').unwrap_or_default();
    let Some(run) = RUNS.iter().find(|run| run.kind.kind() == kind) else { return };
    let bytes = Outline::parse(outline).container();
    match what.parse() {
        Ok(round) => run.use_statistics(round, &bytes),
        Err(_) => run.use_broadcast(&bytes),
    }
}

/// A text that is said to be compressed, with gzip and with zstd.
fn text_compressed(data: &[u8]) {
    // A few bytes of zstd can stand for a thousand times as many, and more say nothing new.
    if data.len() > 512 {
        return;
    }
    for name in ["text.gz", "text.zst"] {
        for invalid in [Invalid::Error, Invalid::Replace] {
            let inputs = Inputs::new([file(name, data)]).invalid(invalid);
            read_sentences(&inputs, &Preprocessing::default());
        }
    }
}

/// One document per line, in fields.
fn text_docs(data: &[u8]) {
    let fields = vec![Field::Label, Field::Skip, Field::Split, Field::Text];
    read_text(Format::Docs(fields), data);
}

/// Arrays of token ids and their tokenizer; the input is `tokenizer NUL array`.
fn token_ids(data: &[u8]) {
    let (tokenizer, array) = forge::header_and_arrays(data);
    let Ok(names) = TokenNames::open(file("tokenizer.json", tokenizer), None) else { return };
    for name in ["ids.npy", "ids.npz", "ids.arrow"] {
        let mut inputs = Inputs::new([file(name, array)]);
        inputs.token_names = Some(names.clone());
        read_sentences(&inputs, &Preprocessing::default());
    }
}

/// Word vectors in the binary format of word2vec.
fn vectors_binary(data: &[u8]) {
    let read = |mut bytes: &[u8]| read_binary(&mut bytes, &Preprocessing::default());
    let Ok((lexicon, vectors)) = read(data) else { return };
    use_vectors(lexicon, vectors, read, |vocab, vectors, out| write_binary(vocab, vectors, out));
}

/// Word vectors as a matrix of numpy with a list of words; the input is `words NUL matrix`.
fn vectors_npy(data: &[u8]) {
    fn read(data: &[u8]) -> Result<(Lexicon, WordVectors), VectorsError> {
        let (mut words, mut matrix) = forge::header_and_arrays(data);
        npy::read(&mut matrix, &mut words, &Preprocessing::default())
    }
    let Ok((lexicon, vectors)) = read(data) else { return };
    use_vectors(lexicon, vectors, read, |vocab, vectors, out| {
        let (mut words, mut matrix) = (Vec::new(), Vec::new());
        npy::write(vocab, vectors, &mut matrix, &mut words)?;
        out.extend([&words[..], &[0], &matrix].concat());
        Ok(())
    });
}

/// Word vectors as text, with a first line (word2vec, fastText) and without (GloVe).
fn vectors_text(data: &[u8]) {
    for format in [TextFormat::Word2vec, TextFormat::Glove] {
        let read =
            |mut text: &[u8]| compat::read_text(&mut text, format, &Preprocessing::default());
        let Ok((lexicon, vectors)) = read(data) else { continue };
        use_vectors(lexicon, vectors, read, |vocab, vectors, out| {
            compat::write_text(vocab, vectors, format, out)
        });
    }
}

/// A vocabulary file. What is read can be written, and read again.
fn vocab(data: &[u8]) {
    let Ok(lexicon) = Lexicon::open(file("vocab", data)) else { return };
    let again = path("vocab again");
    lexicon.save(&again).expect("what was read can be written");
    let again = Lexicon::open(&again).expect("what was written can be read");
    assert_eq!(again.vocab.counts(), lexicon.vocab.counts());
    assert!(again.vocab.words().eq(lexicon.vocab.words()));
    for word in lexicon.vocab.words() {
        let _ = lexicon.vocab.count(lexicon.vocab.id(word));
    }
}
