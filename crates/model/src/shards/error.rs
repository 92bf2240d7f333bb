use crate::fit::FitError;
use crate::params::ParamError;
use latens_corpus::ReadError;
use latens_store::ContainerError;
use thiserror::Error;

/// A step of learning from shards failed.
///
/// Messages count shards from 1.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ShardError {
    /// A broadcast or statistics cannot be read.
    #[error(transparent)]
    Container(#[from] ContainerError),
    /// Models of this kind cannot be trained from shards.
    #[error("models of kind `{kind}` cannot be trained from shards")]
    UnknownKind {
        /// The kind.
        kind: String,
    },
    /// The parameters are not those of the model.
    #[error("invalid parameters of `{kind}`")]
    InvalidParams {
        /// The kind of the model.
        kind: String,
        /// The cause.
        #[source]
        source: serde_json::Error,
    },
    /// A parameter is invalid.
    #[error(transparent)]
    Params(#[from] ParamError),
    /// The text of a shard cannot be read.
    #[error("shard {} of {n_shards}: cannot read its text", shard + 1)]
    Text {
        /// The shard, counted from 0.
        shard: usize,
        /// The number of shards.
        n_shards: usize,
        /// The cause.
        #[source]
        source: ReadError,
    },
    /// The statistics of a shard cannot be computed.
    #[error("shard {} of {n_shards}: cannot compute its statistics", shard + 1)]
    Statistics {
        /// The shard, counted from 0.
        shard: usize,
        /// The number of shards.
        n_shards: usize,
        /// The cause.
        #[source]
        source: FitError,
    },
    /// Statistics do not belong to the broadcast or to each other.
    #[error("{shards} of {n_shards}: {problem}")]
    Unlike {
        /// The shards: `shard 3` or `shards 1, 2`.
        shards: String,
        /// The number of shards.
        n_shards: usize,
        /// What differs.
        problem: String,
    },
    /// A shard is not in the range of shard numbers.
    #[error("there is no shard {}: the run has {n_shards} shards", shard + 1)]
    NoSuchShard {
        /// The shard, counted from 0.
        shard: usize,
        /// The number of shards.
        n_shards: usize,
    },
    /// Statistics of some shards are missing.
    #[error("statistics of {shards} of {n_shards} are missing")]
    Missing {
        /// The shards: `shard 3` or `shards 1, 2`.
        shards: String,
        /// The number of shards.
        n_shards: usize,
    },
    /// There are no statistics to merge.
    #[error("there are no statistics to merge")]
    Nothing,
    /// The run cannot begin.
    #[error("cannot begin the run")]
    Begin(#[source] FitError),
    /// The update failed.
    #[error("cannot update the model")]
    Update(#[from] FitError),
}

impl ShardError {
    /// An error of inconsistent arrays, which a forged file may have.
    pub(super) fn inconsistent(problem: String) -> FitError {
        FitError::Step {
            action: "use the arrays of a broadcast or of statistics",
            source: problem.into(),
        }
    }
}

/// Shards for messages: `shard 3`, or `shards 1, 2 and 5 more`.
pub(super) fn in_words(shards: &[usize]) -> String {
    const SHOWN: usize = 8;
    let numbers: Vec<String> = shards.iter().take(SHOWN).map(|s| (s + 1).to_string()).collect();
    let noun = if shards.len() == 1 { "shard" } else { "shards" };
    let more = match shards.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{noun} {}{more}", numbers.join(", "))
}
