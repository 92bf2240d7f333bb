use super::arrays::Arrays;
use super::packing::{check_n_shards, pack, unpack};
use super::state::ShardState;
use latens_corpus::{Cleaning, Lexicon, Preprocessing, VocabLimits, read_vocab};
use latens_store::{Container, ContainerError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

const KIND: &str = "shard broadcast";
const STATE: &str = "state";

/// What a worker needs to compute the statistics of a shard: the state of a run before a round.
#[derive(Clone, Debug)]
pub struct Broadcast {
    /// The kind of model.
    pub(super) kind: String,
    /// The parameters of the model, as JSON.
    pub(super) params: Value,
    pub(super) lexicon: Lexicon,
    pub(super) round: u64,
    pub(super) n_shards: usize,
    pub(super) state: ShardState,
    /// The checksum of the bytes, which identifies this broadcast.
    pub(super) version: u64,
}

#[derive(Serialize, Deserialize)]
struct Meta {
    kind: String,
    params: Value,
    round: u64,
    n_shards: usize,
    n_rounds: Option<u64>,
    progress: Value,
    metrics: BTreeMap<String, f64>,
    preprocessing: Preprocessing,
    limits: VocabLimits,
    #[serde(default)]
    cleaning: Option<Cleaning>,
    /// The version, if this is the part of a broadcast that workers need.
    #[serde(default)]
    version: Option<u64>,
}

/// Names of arrays that only updates need begin like this.
const DRIVER: &str = "driver.";

impl Broadcast {
    /// The state of a run before a round, with the bytes of its file.
    pub(super) fn new(
        kind: &str,
        params: Value,
        lexicon: Lexicon,
        n_shards: usize,
        round: u64,
        mut state: ShardState,
    ) -> Broadcast {
        // JSON has no other numbers.
        state.metrics.retain(|_, value| value.is_finite());
        let kind = kind.to_owned();
        let mut broadcast = Broadcast { kind, params, lexicon, round, n_shards, state, version: 0 };
        let bytes = broadcast.to_bytes();
        let checksum = bytes.last_chunk().expect("a container ends with its checksum");
        broadcast.version = u64::from_le_bytes(*checksum);
        broadcast
    }

    /// The kind of model.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Number of rounds before this broadcast.
    pub fn round(&self) -> u64 {
        self.round
    }

    /// Number of rounds of the whole run, if it is known.
    pub fn n_rounds(&self) -> Option<u64> {
        self.state.n_rounds
    }

    /// Number of shards of the run.
    pub fn n_shards(&self) -> usize {
        self.n_shards
    }

    /// What the last round measured.
    pub fn metrics(&self) -> &BTreeMap<String, f64> {
        &self.state.metrics
    }

    /// The preprocessing and the vocabulary of the text.
    pub fn lexicon(&self) -> &Lexicon {
        &self.lexicon
    }

    /// A checksum that distinguishes broadcasts.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The bytes of a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.bytes_with(&self.state.arrays, None)
    }

    /// The bytes that workers need: without what only updates need, such as the state of an optimizer.
    pub fn to_worker_bytes(&self) -> Vec<u8> {
        let arrays = self.state.arrays.0.iter().filter(|(name, _)| !name.starts_with(DRIVER));
        let arrays = arrays.map(|(name, numbers)| (name.clone(), numbers.clone())).collect();
        self.bytes_with(&Arrays(arrays), Some(self.version))
    }

    fn bytes_with(&self, arrays: &Arrays, version: Option<u64>) -> Vec<u8> {
        let ShardState { n_rounds, progress, metrics, .. } = &self.state;
        let Lexicon { preprocessing, limits, vocab, cleaning } = &self.lexicon;
        let meta = Meta {
            kind: self.kind.clone(),
            params: self.params.clone(),
            round: self.round,
            n_shards: self.n_shards,
            n_rounds: *n_rounds,
            progress: progress.clone(),
            metrics: metrics.clone(),
            preprocessing: *preprocessing,
            limits: *limits,
            cleaning: (!cleaning.is_empty()).then(|| cleaning.clone()),
            version,
        };
        pack(KIND, &meta, Some(vocab), &[(STATE.to_owned(), arrays)])
    }

    /// Reads the bytes of a file, which messages call `name`.
    pub fn from_bytes(bytes: &[u8], name: impl AsRef<Path>) -> Result<Broadcast, ContainerError> {
        Broadcast::from_container(&Container::from_bytes(bytes, name, KIND)?)
    }

    /// Maps a file into memory.
    pub fn open(path: impl AsRef<Path>) -> Result<Broadcast, ContainerError> {
        Broadcast::from_container(&Container::open(path, KIND)?)
    }

    fn from_container(file: &Container) -> Result<Broadcast, ContainerError> {
        let (meta, groups) = unpack::<Meta>(file)?;
        check_n_shards(file, meta.n_shards)?;
        let arrays = groups.into_iter().find(|(group, _)| group == STATE);
        let arrays = arrays.map_or(Arrays::new(), |(_, arrays)| arrays);
        let Meta { kind, params, round, n_shards, n_rounds, progress, metrics, .. } = meta;
        let mut lexicon = Lexicon::new(meta.preprocessing, meta.limits, read_vocab(file)?);
        lexicon.cleaning = meta.cleaning.unwrap_or_default();
        let state = ShardState { n_rounds, progress, metrics, arrays };
        let version = meta.version.unwrap_or_else(|| file.checksum());
        Ok(Broadcast { kind, params, lexicon, round, n_shards, state, version })
    }
}
