use super::arrays::Arrays;
use super::broadcast::Broadcast;
use super::error::ShardError;
use super::state::ShardState;
use crate::fit::FitError;
use crate::model::Model;
use crate::params::{ParamError, Params, Valid};
use latens_corpus::{Documents, Inputs, Lexicon, ReadError, Sentences};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A model that is learned in rounds from the statistics of shards.
///
/// `statistics` depends only on the broadcast, the text of the shard and what the shard carried over from the last
/// round. A lost shard can therefore be computed again with the same result.
pub trait Sharded: 'static {
    /// The kind of the model.
    const KIND: &'static str;
    /// The parameters of the model.
    type Params: Params + Serialize + DeserializeOwned;
    /// The encoded text of a shard, which a worker keeps between rounds.
    type Text: Send + Sync + 'static;

    /// What a run can have besides the parameters and the text of the shards.
    const INPUTS: &'static [ShardInput] = &[ShardInput::Vocab];

    /// Checks what shards demand of parameters beyond [`Params::check`].
    fn check(_: &Self::Params) -> Result<(), ParamError> {
        Ok(())
    }

    /// The state before the first round. `inputs` are additional inputs of the model, such as word vectors.
    fn begin(
        params: &Valid<Self::Params>,
        lexicon: &Lexicon,
        inputs: Arrays,
    ) -> Result<ShardState, FitError>;

    /// Reads and encodes the text of a shard.
    fn read(lexicon: &Lexicon, part: &Part) -> Result<Self::Text, ReadError>;

    /// The statistics of a shard.
    fn statistics(
        job: &Job<'_, Self::Params>,
        shard: usize,
        text: &Self::Text,
        carry: Option<&Arrays>,
    ) -> Result<Computed, FitError>;

    /// Adds up the statistics of two shards or groups of shards.
    fn merge(a: Arrays, b: Arrays) -> Result<Arrays, FitError> {
        a.plus(b).map_err(ShardError::inconsistent)
    }

    /// Makes the next state, or the model, from the sums over all shards.
    fn update(job: &Job<'_, Self::Params>, sums: Arrays) -> Result<Step, FitError>;
}

/// An input of a run besides the parameters and the text of the shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShardInput {
    /// The vocabulary of the whole text.
    Vocab,
    /// Clusters of the words of the vocabulary.
    WordClusters,
    /// Vectors of the words of the vocabulary.
    WordVectors,
    /// The column of the tags in tagged text.
    TagColumn,
}

/// The text of a shard.
#[derive(Clone, Debug)]
pub enum Part {
    /// Files.
    Files(Box<Inputs>),
    /// Sentences or documents in memory.
    Lines(Vec<String>),
}

impl Part {
    /// Reads the sentences of a shard. Fails if it has no words.
    pub fn sentences(&self, lexicon: &Lexicon) -> Result<Sentences, ReadError> {
        match self {
            Part::Files(inputs) => lexicon.read(inputs),
            Part::Lines(lines) => {
                let sentences = lexicon.sentences(lines);
                match sentences.n_tokens() > sentences.len() {
                    true => Ok(sentences),
                    false => Err(no_words()),
                }
            }
        }
    }

    /// Reads the documents of a shard. Fails if it has no words.
    pub fn documents(&self, lexicon: &Lexicon) -> Result<Documents, ReadError> {
        match self {
            Part::Files(inputs) => Documents::read_with(inputs, lexicon),
            Part::Lines(texts) => {
                let documents = lexicon.documents(texts);
                if documents.n_tokens() > 0 { Ok(documents) } else { Err(no_words()) }
            }
        }
    }
}

fn no_words() -> ReadError {
    ReadError::NoWords { files: "its lines".to_owned() }
}

/// The statistics of a shard, and what it needs in the next round.
#[derive(Clone, Debug, Default)]
pub struct Computed {
    /// The statistics.
    pub sums: Arrays,
    /// What the shard gets back in the next round.
    pub carry: Option<Arrays>,
}

impl From<Arrays> for Computed {
    fn from(sums: Arrays) -> Computed {
        Computed { sums, carry: None }
    }
}

/// The result of a round.
pub enum Step {
    /// Another round follows.
    Next(ShardState),
    /// The run is done.
    Model(Box<dyn Model>),
    /// The run has learned a vocabulary.
    Lexicon(Lexicon),
}

/// A round of a run, as a model sees it.
pub struct Job<'a, P> {
    /// The parameters of the model.
    pub params: Valid<P>,
    /// Preprocessing and vocabulary.
    pub lexicon: &'a Lexicon,
    /// Number of rounds before this one.
    pub round: u64,
    /// Number of shards.
    pub n_shards: usize,
    /// The state before this round.
    pub state: &'a ShardState,
}

impl<'a, P: Params + DeserializeOwned> Job<'a, P> {
    pub(super) fn new(broadcast: &'a Broadcast) -> Result<Job<'a, P>, ShardError> {
        let Broadcast { lexicon, round, n_shards, state, .. } = broadcast;
        let params = parse_params(&broadcast.kind, broadcast.params.clone())?;
        Ok(Job { params, lexicon, round: *round, n_shards: *n_shards, state })
    }
}

impl<P> Job<'_, P> {
    /// The progress as a value of type `T`.
    pub fn progress<T: DeserializeOwned>(&self) -> Result<T, FitError> {
        serde_json::from_value(self.state.progress.clone())
            .map_err(FitError::step("read the state of a broadcast"))
    }

    /// An array of the state, of `n` values.
    pub fn array<T: super::ShardNumber>(
        &self,
        name: &str,
        n: usize,
    ) -> Result<&latens_store::FlatArray<T>, FitError> {
        self.state.arrays.get_n(name, n).map_err(ShardError::inconsistent)
    }
}

/// The largest number of tokens of a text.
const MAX_TOTAL: u64 = 1 << 56;

impl Arrays {
    /// Returns an array of `n` values, or an error for a forged file.
    pub fn expect<T: super::ShardNumber>(
        &self,
        name: &str,
        n: usize,
    ) -> Result<&latens_store::FlatArray<T>, FitError> {
        self.get_n(name, n).map_err(ShardError::inconsistent)
    }

    /// Returns the counts of `n` things in a text, or an error for a forged file: no text has so many that sums of counts
    /// overflow.
    pub fn expect_counts(
        &self,
        name: &str,
        n: usize,
    ) -> Result<&latens_store::FlatArray<u64>, FitError> {
        let counts = self.expect::<u64>(name, n)?;
        let total = counts.iter().try_fold(0_u64, |total, &count| total.checked_add(count));
        match total.is_some_and(|total| total <= MAX_TOTAL) {
            true => Ok(counts),
            false => Err(ShardError::inconsistent(format!("the counts `{name}` are too large"))),
        }
    }

    /// Returns an array of any length, or an error for a forged file.
    pub fn expect_any<T: super::ShardNumber>(
        &self,
        name: &str,
    ) -> Result<&latens_store::FlatArray<T>, FitError> {
        self.get(name).map_err(ShardError::inconsistent)
    }

    /// Returns the pairs of a sparse array, or an error for a forged file.
    pub fn expect_sparse(&self, name: &str) -> Result<Vec<(u64, i64)>, FitError> {
        self.get_sparse(name).map_err(ShardError::inconsistent)
    }
}

/// Parses and validates parameters.
pub(super) fn parse_params<P: Params + DeserializeOwned>(
    kind: &str,
    params: Value,
) -> Result<Valid<P>, ShardError> {
    let params: P = serde_json::from_value(params)
        .map_err(|source| ShardError::InvalidParams { kind: kind.to_owned(), source })?;
    Ok(params.validate()?)
}
