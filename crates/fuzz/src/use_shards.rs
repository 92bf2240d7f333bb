//! Runs from shards, with broadcasts and statistics that someone else has written.

use crate::forge;
use crate::use_model::use_model;
use latens::corpus::{Lexicon, Preprocessing, Vocab, VocabLimits};
use latens::model::shards::{Arrays, Broadcast, Part, Round, ShardKind, Statistics};
use serde_json::{Value, json};
use std::sync::LazyLock;

/// A small run of two shards.
pub struct Run {
    /// Kind of model.
    pub kind: &'static dyn ShardKind,
    parts: [Part; 2],
    /// The broadcast of each round, and the statistics of its shards.
    pub rounds: Vec<(Broadcast, Vec<Statistics>)>,
}

/// A run of every kind of model.
pub static RUNS: LazyLock<Vec<Run>> =
    LazyLock::new(|| latens::SHARD_KINDS.iter().map(|&kind| Run::new(kind)).collect());

/// The parameters and the additional inputs of a run.
fn given(kind: &str, n_words: usize) -> (Value, Arrays) {
    let vectors: Vec<f32> = (0..2 * n_words).map(|i| (i % 5) as f32 - 2.0).collect();
    match kind {
        "brown" => (json!({ "n_clusters": 2 }), Arrays::new()),
        "fhmm" => (
            json!({ "n_layers": 2, "n_states": 2, "epochs": 1, "batch_sentences": 2, "inference": "exact-mf" }),
            Arrays::new(),
        ),
        "glda" => (
            json!({ "n_topics": 2, "n_iterations": 2, "sampler": "parallel" }),
            Arrays::new().with("dim", vec![2u64]).with("vectors", vectors),
        ),
        "hmm" => (
            json!({ "n_states": 4, "n_clusters": 2, "parameterization": "scalar", "epochs": 2 }),
            Arrays::new(),
        ),
        "lda" => (json!({ "n_topics": 2, "n_iterations": 2, "sampler": "dense" }), Arrays::new()),
        "lds" => (json!({ "dim": 1, "lags": 4, "ssid_lags": 2, "n_iterations": 1 }), Arrays::new()),
        "tagger" => (json!({ "n_iterations": 2 }), Arrays::new()),
        "word2vec" => (json!({ "dim": 2, "epochs": 2 }), Arrays::new()),
        _ => (json!({}), Arrays::new()),
    }
}

const TEXTS: [[&str; 3]; 2] = [
    ["the cat saw the dog", "a dog ran", "the cat ran"],
    ["a cat saw a dog", "the dog ran", "dogs ran"],
];

fn part(kind: &str, lines: [&str; 3]) -> Part {
    let tagged = |line: &str| {
        let rows = line.split(' ').map(|word| format!("{word}\t{}", &word[..1]));
        rows.chain([String::new()]).collect::<Vec<String>>()
    };
    Part::Lines(match kind {
        "tagger" => lines.into_iter().flat_map(tagged).collect(),
        _ => lines.map(str::to_owned).to_vec(),
    })
}

impl Run {
    fn new(kind: &'static dyn ShardKind) -> Run {
        let parts = TEXTS.map(|lines| part(kind.kind(), lines));
        let limits = VocabLimits::default();
        let words = TEXTS.iter().flatten().flat_map(|line| line.split(' ')).map(|word| (word, 1));
        let vocab = match kind.kind() {
            "vocab" | "tagger" => Vocab::from_counts([], &limits),
            _ => Vocab::from_counts(words, &limits),
        };
        let (params, inputs) = given(kind.kind(), vocab.len());
        let lexicon = Lexicon::new(Preprocessing::default(), limits, vocab);
        let mut broadcast = kind.begin(params, lexicon, 2, inputs).expect("the run can begin");
        let mut run = Run { kind, parts, rounds: Vec::new() };
        loop {
            let statistics = run.statistics(&broadcast).expect("the run has statistics");
            let merged = kind.merge(statistics.clone()).expect("the statistics fit together");
            let next = kind.update(&broadcast, merged).expect("the run goes on");
            run.rounds.push((broadcast, statistics));
            match next {
                Round::Next(next) => broadcast = *next,
                Round::Model(_) | Round::Lexicon(_) => return run,
            }
        }
    }

    /// The statistics of both shards. What they carry over is that of the recorded run.
    fn statistics(&self, broadcast: &Broadcast) -> Option<Vec<Statistics>> {
        let round = usize::try_from(broadcast.round()).ok()?;
        let before = round.checked_sub(1).and_then(|round| self.rounds.get(round));
        let of_shard = |(shard, part): (usize, &Part)| {
            let text = self.kind.read(broadcast, shard, part).ok()?;
            let previous = before.map(|(_, statistics)| &statistics[shard]);
            let previous = previous.filter(|previous| previous.has_carry());
            self.kind.statistics(broadcast, &text, previous).ok()
        };
        self.parts.iter().enumerate().map(of_shard).collect()
    }

    fn update(&self, broadcast: &Broadcast, statistics: Statistics) {
        match self.kind.update(broadcast, statistics) {
            Ok(Round::Model(model)) => use_model(&*model),
            Ok(Round::Next(next)) => _ = self.statistics(&next),
            Ok(Round::Lexicon(_)) | Err(_) => (),
        }
    }

    /// Computes a round with a broadcast.
    pub fn use_broadcast(&self, bytes: &[u8]) {
        let Ok(broadcast) = Broadcast::from_bytes(bytes, "broadcast") else { return };
        let again = Broadcast::from_bytes(&broadcast.to_bytes(), "again");
        assert_eq!(again.expect("what was read can be written").round(), broadcast.round());
        // Parameters set the sizes of a model, and anyone may train a large one.
        let own = self.rounds[0].0.to_bytes();
        if broadcast.kind() != self.kind.kind() || params(bytes) != params(&own) {
            return;
        }
        let Some(statistics) = self.statistics(&broadcast) else { return };
        if let Ok(merged) = self.kind.merge(statistics) {
            self.update(&broadcast, merged);
        }
    }

    /// Uses statistics for the first shard of a round.
    pub fn use_statistics(&self, round: usize, bytes: &[u8]) {
        let Ok(found) = Statistics::from_bytes(bytes, "statistics") else { return };
        let again = Statistics::from_bytes(&found.to_bytes(), "again");
        assert_eq!(again.expect("what was read can be written").shards(), found.shards());
        let Some((broadcast, statistics)) = self.rounds.get(round) else { return };
        if let Some((next, _)) = self.rounds.get(round + 1)
            && let Ok(text) = self.kind.read(next, 0, &self.parts[0])
        {
            let _ = self.kind.statistics(next, &text, Some(&found));
        }
        if let Ok(merged) = self.kind.merge(vec![found, statistics[1].clone()]) {
            self.update(broadcast, merged);
        }
    }
}

/// The parameters in the header of a broadcast.
fn params(bytes: &[u8]) -> Option<Value> {
    let (json, _) = forge::split(&bytes[..bytes.len().checked_sub(8)?], 8);
    let header: Value = serde_json::from_slice(json).ok()?;
    header.pointer("/meta/meta/params").cloned()
}
