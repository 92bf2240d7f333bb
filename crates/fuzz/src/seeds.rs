//! Small inputs that the readers accept, from which fuzzing starts.

mod constants;

use crate::forge::{unsealed_container, unsealed_model};
use crate::outline::{Outline, outline_of_model, outline_of_shards};
use crate::scratch::{file, path};
use crate::trainings::{TRAININGS, files_of, foreign_vectors};
use crate::use_shards::RUNS;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, ListArray, RecordBatch, StringArray};
use arrow_ipc::writer::StreamWriter;
use constants::{
    ARPA, DOCUMENTS, LAGS, NGRAMS, OTHER_TEXTS, PATHS, SENTENCES, TEXT, VECTORS_GLOVE,
    VECTORS_WORD2VEC, VOCAB,
};
use flate2::Compression;
use flate2::write::GzEncoder;
use latens::corpus::{Corpus, Documents, Inputs, Preprocessing, VocabLimits};
use latens::counts::{Boundary, Budget, LagCounts, NgramCounts};
use latens::model::Model;
use latens::model::compat::{TextFormat, npy, read_text, write_binary};
use serde_json::Value;
use std::error::Error;
use std::fs;
use std::io::{Cursor, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

/// An input that its target accepts.
pub struct Seed {
    /// Name of the target.
    pub target: &'static str,
    /// Name of the input, unique for the target.
    pub name: String,
    /// The input.
    pub bytes: Vec<u8>,
}

fn seed(target: &'static str, name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Seed {
    Seed { target, name: name.into(), bytes: bytes.into() }
}

/// Seeds for every target: every kind of model and checkpoint, every file of counts, every text format.
pub fn all() -> Result<Vec<Seed>, Box<dyn Error>> {
    let mut seeds: Vec<Seed> =
        OTHER_TEXTS.iter().map(|&(target, name, text)| seed(target, name, text)).collect();
    seeds.extend(embedded());
    seeds.extend(compressed()?);
    seeds.push(seed("arpa", "trigrams", ARPA));
    seeds.push(seed("clusters", "paths", PATHS));
    for (name, outline) in
        [("sentences", SENTENCES), ("documents", DOCUMENTS), ("lags", LAGS), ("ngrams", NGRAMS)]
    {
        seeds.push(seed("container_arrays", name, format!("{outline}{VOCAB}")));
    }
    seeds.extend(vectors()?);
    seeds.extend(token_ids()?);
    seeds.extend(containers()?);
    seeds.extend(models());
    seeds.extend(shards());
    Ok(seeds)
}

/// Writes all seeds to `FOLDER/TARGET/NAME`.
pub fn write(folder: &Path) -> Result<(), Box<dyn Error>> {
    for Seed { target, name, bytes } in all()? {
        fs::create_dir_all(folder.join(target))?;
        fs::write(folder.join(target).join(name), bytes)?;
    }
    Ok(())
}

/// The embedded corpus, as far as it fits into a small input.
fn embedded() -> [Seed; 3] {
    use latens::corpus::embedded::{Split, docs, tagged, text};
    let lines = |text: String, n| text.lines().take(n).map(str::to_owned).collect::<Vec<_>>();
    let first = |text, n| lines(text, n).join("\n") + "\n";
    // The target has a field more, which is skipped.
    let docs: String =
        lines(docs(), 4).iter().map(|line| line.replacen('\t', "\tx\t", 1) + "\n").collect();
    [
        seed("text_lines", "embedded", first(text(Split::Valid), 6)),
        seed("text_docs", "embedded", docs),
        seed("text_conll", "embedded", first(tagged(Split::Valid), 40)),
    ]
}

fn compressed() -> Result<[Seed; 2], Box<dyn Error>> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(TEXT.as_bytes())?;
    Ok([
        seed("text_compressed", "gzip", gzip.finish()?),
        seed("text_compressed", "zstd", zstd::encode_all(TEXT.as_bytes(), 3)?),
    ])
}

/// Two vectors of two numbers in every format.
fn vectors() -> Result<Vec<Seed>, Box<dyn Error>> {
    let how = Preprocessing::default();
    let word2vec = TextFormat::Word2vec;
    let (lexicon, vectors) = read_text(&mut VECTORS_WORD2VEC.as_bytes(), word2vec, &how)?;
    let (mut binary, mut words, mut matrix) = (Vec::new(), Vec::new(), Vec::new());
    write_binary(&lexicon.vocab, &vectors, &mut binary)?;
    npy::write(&lexicon.vocab, &vectors, &mut matrix, &mut words)?;
    Ok(vec![
        seed("vectors_text", "word2vec", VECTORS_WORD2VEC),
        seed("vectors_text", "glove", VECTORS_GLOVE),
        seed("vectors_binary", "two", binary),
        seed("vectors_npy", "two", [&words[..], &[0], &matrix].concat()),
    ])
}

/// Token ids as an array, as an archive of one array, and as a column.
fn token_ids() -> Result<[Seed; 3], Box<dyn Error>> {
    const TOKENIZER: &str = r#"{"model":{"vocab":{"</s>":0,"a":1,"b":2}},"added_tokens":[{"id":0,"content":"</s>","special":true}]}"#;
    let header = "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }\n";
    let length = u16::try_from(header.len())?.to_le_bytes();
    let ids = [1i16, 2, 0, 2, 1, -1].map(i16::to_le_bytes).concat();
    let npy = [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), &ids].concat();
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    // The time of the file would change the seed.
    let how = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    zip.start_file("ids.npy", how.last_modified_time(DateTime::default()))?;
    zip.write_all(&npy)?;
    let npz = zip.finish()?.into_inner();
    let rows = [Some(vec![Some(1), Some(2)]), None, Some(vec![None, Some(2)])];
    let rows: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(rows));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a b", "", "b"]));
    let batch = RecordBatch::try_from_iter([("text", texts), ("input_ids", rows)])?;
    let mut arrow = StreamWriter::try_new(Vec::new(), &batch.schema())?;
    arrow.write(&batch)?;
    let arrow = arrow.into_inner()?;
    let input = |array: Vec<u8>| [TOKENIZER.as_bytes(), &[0], &array].concat();
    let files = [("npy", npy), ("npz", npz), ("arrow", arrow)];
    Ok(files.map(|(name, bytes)| seed("token_ids", name, input(bytes))))
}

/// A vocabulary, encoded text and counts, as the program writes them.
fn containers() -> Result<Vec<Seed>, Box<dyn Error>> {
    let (inputs, how) = (Inputs::new([file("text", TEXT.as_bytes())]), Preprocessing::default());
    let corpus = Corpus::encode_to(path("corpus"), &inputs, &how, &VocabLimits::default())?;
    corpus.lexicon.save(path("vocab"))?;
    let limits = VocabLimits { min_count: 2, ..VocabLimits::default() };
    Documents::encode_to(path("documents"), &inputs, &how, &limits)?;
    let (budget, mut watch) = (Budget::default(), |_| ControlFlow::Continue(()));
    let vocab = &corpus.lexicon.vocab;
    NgramCounts::of(&corpus.sentences, vocab, 3, &budget, &mut watch)?.save(path("ngrams"))?;
    LagCounts::of(&corpus, 2, Boundary::Sentence, &budget, &mut watch)?.save(path("lags"))?;
    let mut seeds = vec![seed("vocab", "text", fs::read(path("vocab"))?)];
    for name in ["corpus", "documents", "ngrams", "lags"] {
        let bytes = fs::read(path(name))?;
        seeds.push(seed("container_file", format!("{name}-open"), unsealed_container(&bytes)));
        seeds.push(seed("container_file", name, bytes));
    }
    Ok(seeds)
}

/// A model of every kind and a checkpoint of every training: as they are, unsealed, and as outlines.
fn models() -> Vec<Seed> {
    let mut seeds = Vec::new();
    for training in TRAININGS {
        let (model, checkpoints) = files_of(training);
        seeds.extend(of_model(training.name, &model));
        // The first one and one later on: what is there at the beginning may differ.
        let places = [0, checkpoints.len() / 2];
        for (i, place) in places.into_iter().enumerate().take(checkpoints.len()) {
            let name = format!("{}-{i}", training.name);
            let outline = without_times(&outline_of_model(&checkpoints[place]));
            seeds.push(seed("resume", &name, format!("{}\n{outline}", training.name)));
            seeds.push(seed("model_arrays", format!("checkpoint-{name}"), outline));
        }
        if let Some(first) = checkpoints.first() {
            let name = format!("checkpoint-{}-open", training.name);
            let bytes = Outline::parse(&without_times(&outline_of_model(first))).model();
            seeds.push(seed("model_file", name, unsealed_model(&bytes)));
        }
    }
    let vectors: &dyn Model = &foreign_vectors();
    seeds.extend(of_model("vectors", &vectors.to_bytes()));
    seeds
}

/// The broadcast and the statistics of a shard in every round of a run, as outlines.
fn shards() -> Vec<Seed> {
    let mut seeds = Vec::new();
    for run in RUNS.iter() {
        let kind = run.kind.kind();
        for (round, (broadcast, statistics)) in run.rounds.iter().enumerate() {
            let outline = outline_of_shards(&broadcast.to_bytes());
            let text = format!("{kind} broadcast\n{outline}");
            seeds.push(seed("shards", format!("{kind}-broadcast-{round}"), text));
            let outline = outline_of_shards(&statistics[0].to_bytes());
            let text = format!("{kind} {round}\n{outline}");
            seeds.push(seed("shards", format!("{kind}-statistics-{round}"), text));
        }
    }
    seeds
}

fn of_model(name: &str, bytes: &[u8]) -> [Seed; 3] {
    let outline = without_times(&outline_of_model(bytes));
    let bytes = Outline::parse(&outline).model();
    [
        seed("model_file", format!("{name}-open"), unsealed_model(&bytes)),
        seed("model_file", name, bytes),
        seed("model_arrays", name, outline),
    ]
}

/// The outline with one second for every time, so that seeds are the same in every run.
fn without_times(outline: &str) -> String {
    let (header, arrays) = outline.split_once('\n').expect("an outline has a header");
    let mut header: Value = serde_json::from_str(header).expect("a header is JSON");
    set_times(&mut header, false);
    format!("{header}\n{arrays}")
}

/// Sets all numbers under keys that name seconds.
fn set_times(value: &mut Value, is_time: bool) {
    match value {
        Value::Object(fields) => fields
            .iter_mut()
            .for_each(|(key, value)| set_times(value, is_time || key.contains("second"))),
        Value::Array(values) => values.iter_mut().for_each(|value| set_times(value, is_time)),
        Value::Number(_) if is_time => *value = Value::from(1.0),
        _ => {}
    }
}
