use super::arrays::Arrays;
use super::broadcast::Broadcast;
use super::contract::{Computed, Job, Part, ShardInput, Sharded, Step, parse_params};
use super::error::{ShardError, in_words};
use super::packing::MAX_SHARDS;
use super::statistics::Statistics;
use crate::fit::FitError;
use crate::model::Model;
use latens_corpus::Lexicon;
use serde_json::Value;
use std::any::Any;
use std::marker::PhantomData;

/// A kind of model that is learned from shards, as a driver sees it.
pub trait ShardKind: Sync {
    /// The kind of model.
    fn kind(&self) -> &'static str;

    /// The default parameters of the model, as JSON.
    fn default_params(&self) -> Value;

    /// What a run can have besides the parameters and the text of the shards.
    fn inputs(&self) -> &'static [ShardInput];

    /// Starts a run. `params` are the parameters of the model as JSON; those that are missing have their defaults.
    fn begin(
        &self,
        params: Value,
        lexicon: Lexicon,
        n_shards: usize,
        inputs: Arrays,
    ) -> Result<Broadcast, ShardError>;

    /// Reads and encodes the text of a shard, counted from 0.
    fn read(
        &self,
        broadcast: &Broadcast,
        shard: usize,
        part: &Part,
    ) -> Result<EncodedPart, ShardError>;

    /// The statistics of a shard. `previous` are its own statistics of the last round, which some models need.
    fn statistics(
        &self,
        broadcast: &Broadcast,
        part: &EncodedPart,
        previous: Option<&Statistics>,
    ) -> Result<Statistics, ShardError>;

    /// Merges statistics of different shards, in any order.
    fn merge(&self, parts: Vec<Statistics>) -> Result<Statistics, ShardError>;

    /// Makes the next broadcast, or the model, from the statistics of all shards.
    fn update(&self, broadcast: &Broadcast, statistics: Statistics) -> Result<Round, ShardError>;
}

/// The encoded text of a shard.
pub struct EncodedPart {
    shard: usize,
    kind: &'static str,
    /// Fingerprint of the vocabulary.
    vocab: u64,
    text: Box<dyn Any + Send + Sync>,
}

impl EncodedPart {
    /// The shard, counted from 0.
    pub fn shard(&self) -> usize {
        self.shard
    }
}

/// The result of a round.
#[derive(Debug)]
pub enum Round {
    /// The broadcast of the next round.
    Next(Box<Broadcast>),
    /// The model.
    Model(Box<dyn Model>),
    /// The vocabulary.
    Lexicon(Box<Lexicon>),
}

/// The kind of the model `S`.
pub struct KindOf<S>(PhantomData<fn() -> S>);

impl<S> KindOf<S> {
    /// The kind of the model `S`.
    pub const fn new() -> KindOf<S> {
        KindOf(PhantomData)
    }
}

impl<S> Default for KindOf<S> {
    fn default() -> Self {
        KindOf::new()
    }
}

impl<S: Sharded> ShardKind for KindOf<S> {
    fn kind(&self) -> &'static str {
        S::KIND
    }

    fn default_params(&self) -> Value {
        serde_json::to_value(S::Params::default()).expect("parameters are JSON")
    }

    fn inputs(&self) -> &'static [ShardInput] {
        S::INPUTS
    }

    fn begin(
        &self,
        params: Value,
        lexicon: Lexicon,
        n_shards: usize,
        inputs: Arrays,
    ) -> Result<Broadcast, ShardError> {
        crate::params::check_range("n_shards", n_shards, 1..=MAX_SHARDS)?;
        let params = parse_params::<S::Params>(S::KIND, params)?;
        S::check(&params)?;
        let state = S::begin(&params, &lexicon, inputs).map_err(|error| match error {
            FitError::Params(error) => ShardError::Params(error),
            error => ShardError::Begin(error),
        })?;
        let params = serde_json::to_value(&params)
            .map_err(|source| ShardError::InvalidParams { kind: S::KIND.to_owned(), source })?;
        Ok(Broadcast::new(S::KIND, params, lexicon, n_shards, 0, state))
    }

    fn read(
        &self,
        broadcast: &Broadcast,
        shard: usize,
        part: &Part,
    ) -> Result<EncodedPart, ShardError> {
        let n_shards = broadcast.n_shards;
        if shard >= n_shards {
            return Err(ShardError::NoSuchShard { shard, n_shards });
        }
        let text = S::read(&broadcast.lexicon, part).map_err(|source| ShardError::Text {
            shard,
            n_shards,
            source,
        })?;
        let vocab = broadcast.lexicon.vocab.fingerprint();
        Ok(EncodedPart { shard, kind: S::KIND, vocab, text: Box::new(text) })
    }

    fn statistics(
        &self,
        broadcast: &Broadcast,
        part: &EncodedPart,
        previous: Option<&Statistics>,
    ) -> Result<Statistics, ShardError> {
        let (shard, n_shards) = (part.shard, broadcast.n_shards);
        let vocab = broadcast.lexicon.vocab.fingerprint();
        let Some(text) = part.text.downcast_ref::<S::Text>().filter(|_| part.vocab == vocab) else {
            let problem =
                format!("its text was encoded for `{}` with another vocabulary", part.kind);
            return Err(ShardError::Unlike { shards: in_words(&[shard]), n_shards, problem });
        };
        let carry = previous.map(|previous| previous.carry_for(broadcast, shard)).transpose()?;
        let job = Job::<S::Params>::new(broadcast)?;
        S::check(&job.params)?;
        let Computed { sums, carry } = S::statistics(&job, shard, text, carry)
            .map_err(|source| ShardError::Statistics { shard, n_shards, source })?;
        Ok(Statistics::of_shard(broadcast, shard, sums, carry))
    }

    fn merge(&self, parts: Vec<Statistics>) -> Result<Statistics, ShardError> {
        Statistics::merge(parts, &S::merge)
    }

    fn update(&self, broadcast: &Broadcast, statistics: Statistics) -> Result<Round, ShardError> {
        let merged = self.merge(vec![statistics])?;
        let sums = merged.total(broadcast)?;
        let Broadcast { kind, params, lexicon, round, n_shards, .. } = broadcast;
        let job = Job::<S::Params>::new(broadcast)?;
        S::check(&job.params)?;
        Ok(match S::update(&job, sums)? {
            Step::Next(state) => Round::Next(Box::new(Broadcast::new(
                kind,
                params.clone(),
                lexicon.clone(),
                *n_shards,
                // A forged broadcast may have the largest number.
                round.saturating_add(1),
                state,
            ))),
            Step::Model(model) => Round::Model(model),
            Step::Lexicon(lexicon) => Round::Lexicon(Box::new(lexicon)),
        })
    }
}
