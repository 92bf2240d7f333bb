//! What all rounds of a run share.

use crate::params::HmmParams;
use crate::train::gradient::first_plateau;
use latens_corpus::Sentences;
use latens_model::FitError;
use latens_model::shards::Job;
use latens_nn::Plateau;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex};

/// The sequences of each mini-batch of an epoch.
pub(super) type Batches = Arc<Vec<Vec<u32>>>;

/// The text of a shard.
pub struct HmmText {
    pub(super) sentences: Sentences,
    /// The mini-batches of an epoch of the whole text, with a key that identifies them.
    pub(super) batches: Mutex<Option<(u64, Batches)>>,
}

impl HmmText {
    pub(super) fn new(sentences: Sentences) -> HmmText {
        HmmText { sentences, batches: Mutex::new(None) }
    }
}

/// The progress of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Progress {
    /// Sizes of the text.
    pub(super) tokens: u64,
    pub(super) sentences: u64,
    /// Tokens of each shard, to notice a text that has changed.
    pub(super) shard_tokens: Vec<u64>,
    /// Completed epochs or iterations.
    pub(super) epoch: usize,
    /// Mini-batches of this epoch, and those that are done.
    pub(super) n_batches: usize,
    pub(super) batch: usize,
    pub(super) n_steps: u64,
    /// Σ ln p of this epoch.
    pub(super) log_prob: f64,
    pub(super) train_perplexity: Option<f64>,
    pub(super) plateau: Option<Plateau>,
}

/// The progress before a round after the first one. Its numbers are those of a possible run.
pub(super) fn progress(job: &Job<'_, HmmParams>) -> Result<Progress, FitError> {
    let progress: Progress = job.progress()?;
    let is_round = progress.epoch < job.params.epochs
        && (job.params.by_em() || progress.batch < progress.n_batches)
        && progress.plateau.is_none_or(|plateau| plateau.follows(&first_plateau(&job.params)))
        // Far more than any run makes.
        && progress.n_batches.max(progress.n_steps as usize) < 1 << 48;
    match is_round {
        true => Ok(progress),
        false => Err(inconsistent("the progress is not valid before a round")),
    }
}

pub(super) fn to_json(progress: &Progress) -> serde_json::Value {
    serde_json::to_value(progress).expect("progress consists of numbers")
}

/// An error for statistics or broadcasts that contradict themselves.
pub(super) fn inconsistent(problem: &str) -> FitError {
    FitError::Step { action: "use the arrays of shards", source: problem.into() }
}
