//! Runs in memory and through files.

use latens::corpus::{Inputs, Lexicon, Preprocessing, VocabLimits, embedded};
use latens::model::Model;
use latens::model::shards::{Arrays, Broadcast, Part, Round, Statistics};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// The embedded text in seven files of different lengths.
pub(crate) struct Texts {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) paths: Vec<PathBuf>,
}

impl Texts {
    pub(crate) fn new(n_lines: usize) -> Texts {
        Texts::of(embedded::text(embedded::Split::Train).lines().take(n_lines).collect())
    }

    pub(crate) fn of(lines: Vec<&str>) -> Texts {
        Texts::with_extension(&lines, "txt")
    }

    pub(crate) fn with_extension(lines: &[impl AsRef<str>], extension: &str) -> Texts {
        let lines: Vec<&str> = lines.iter().map(AsRef::as_ref).collect();
        let folder = tempfile::tempdir().unwrap();
        let (mut paths, mut begin) = (Vec::new(), 0);
        for shard in 0..7 {
            let end = lines.len() * (shard + 1) * (shard + 8) / 98;
            let path = folder.path().join(format!("{shard}.{extension}"));
            fs::write(&path, lines[begin..end].join("\n") + "\n").unwrap();
            paths.push(path);
            begin = end;
        }
        Texts { folder, paths }
    }

    pub(crate) fn inputs(&self) -> Inputs {
        Inputs::new(&self.paths)
    }

    /// The files in `n` consecutive shards.
    pub(crate) fn parts(&self, n: usize) -> Vec<Part> {
        let begin = |shard: usize| 7 * shard / n;
        let files = |shard: usize| &self.paths[begin(shard)..begin(shard + 1)];
        (0..n).map(|shard| Part::Files(Box::new(Inputs::new(files(shard))))).collect()
    }

    pub(crate) fn lexicon(&self, limits: VocabLimits) -> Lexicon {
        Lexicon::learn(&self.inputs(), &Preprocessing::default(), &limits).unwrap().lexicon
    }
}

/// Learns in memory, merging in ascending order.
pub(crate) fn in_memory(
    kind: &str,
    params: Value,
    lexicon: Lexicon,
    parts: &[Part],
    inputs: Arrays,
) -> Box<dyn Model> {
    match latens::fit_shards(kind, params, lexicon, parts, inputs).unwrap() {
        Round::Model(model) => model,
        other => panic!("{other:?}"),
    }
}

/// Learns through files: nothing but bytes goes from step to step. Statistics arrive in descending order and merge two
/// by two.
pub(crate) fn through_files(
    kind: &str,
    params: Value,
    lexicon: Lexicon,
    parts: &[Part],
    inputs: Arrays,
) -> Box<dyn Model> {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: String| folder.path().join(name);
    let kind = latens::shard_kind(kind).unwrap();
    let first = kind.begin(params, lexicon, parts.len(), inputs).unwrap();
    fs::write(path("0".into()), first.to_bytes()).unwrap();
    for round in 0.. {
        let broadcast = Broadcast::open(path(round.to_string())).unwrap();
        for (shard, part) in parts.iter().enumerate() {
            // Workers get less than the driver keeps.
            let bytes = broadcast.to_worker_bytes();
            let worker = Broadcast::from_bytes(&bytes, "broadcast").unwrap();
            assert_eq!(worker.version(), broadcast.version());
            let text = kind.read(&worker, shard, part).unwrap();
            let previous = path(format!("{}.{shard}", round.max(1) - 1));
            let previous = Statistics::open(previous).ok().filter(|_| round > 0);
            let previous = previous.filter(Statistics::has_carry);
            let statistics = kind.statistics(&worker, &text, previous.as_ref()).unwrap();
            fs::write(path(format!("{round}.{shard}")), statistics.to_bytes()).unwrap();
        }
        let mut merged: Option<Statistics> = None;
        for shard in (0..parts.len()).rev() {
            let next = Statistics::open(path(format!("{round}.{shard}"))).unwrap();
            let sum = kind.merge(merged.into_iter().chain([next]).collect()).unwrap();
            merged = Some(Statistics::from_bytes(&sum.to_bytes(), "merged").unwrap());
        }
        match kind.update(&broadcast, merged.unwrap()).unwrap() {
            Round::Next(next) => {
                fs::write(path((round + 1).to_string()), next.to_bytes()).unwrap();
            }
            Round::Model(model) => return model,
            other => panic!("{other:?}"),
        }
    }
    unreachable!("a run ends")
}

/// The arrays of a model file, with their types.
pub(crate) fn arrays(model: &dyn Model) -> BTreeMap<String, (String, Vec<u8>)> {
    let bytes = model.to_bytes();
    let n = u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&bytes[8..8 + n]).unwrap();
    let entries = header.as_object().unwrap().iter().filter(|(name, _)| *name != "__metadata__");
    let entry = |(name, entry): (&String, &Value)| {
        let [begin, end] =
            [0, 1].map(|i| entry["data_offsets"][i].as_u64().unwrap() as usize + 8 + n);
        (name.clone(), (entry["dtype"].as_str().unwrap().to_owned(), bytes[begin..end].to_vec()))
    };
    entries.map(entry).collect()
}

/// Checks that all arrays are equal, bit for bit.
pub(crate) fn assert_same(a: &dyn Model, b: &dyn Model) {
    let (a, b) = (arrays(a), arrays(b));
    assert!(a.keys().eq(b.keys()));
    for (name, values) in &a {
        assert!(*values == b[name], "`{name}` differs");
    }
}

/// Checks that arrays are equal, those of floating-point numbers up to `tolerance`.
pub(crate) fn assert_close(a: &dyn Model, b: &dyn Model, tolerance: f64) {
    let (a, b) = (arrays(a), arrays(b));
    assert!(a.keys().eq(b.keys()));
    for (name, (dtype, values)) in &a {
        let floats = |bytes: &[u8]| -> Vec<f64> {
            match dtype.as_str() {
                "F32" => bytes
                    .chunks_exact(4)
                    .map(|x| f64::from(f32::from_le_bytes(x.try_into().unwrap())))
                    .collect(),
                "F64" => bytes
                    .chunks_exact(8)
                    .map(|x| f64::from_le_bytes(x.try_into().unwrap()))
                    .collect(),
                _ => bytes.iter().map(|&x| f64::from(x)).collect(),
            }
        };
        let (x, y) = (floats(values), floats(&b[name].1));
        assert_eq!(x.len(), y.len());
        for (x, y) in x.iter().zip(&y) {
            assert!((x - y).abs() <= tolerance * (1.0 + x.abs()), "`{name}`: {x} {y}");
        }
    }
}
