//! Learning from the shards of a text: expected counts and gradients add up.

mod space;
mod baum_welch;
mod gradient;

use crate::model::Hmm;
use crate::params::{HmmParams, Memory};
use latens_corpus::{Lexicon, ReadError, Sentences};
use latens_model::shards::{Arrays, Computed, Job, Part, ShardState, Sharded, Step};
use latens_model::{FitError, Valid, check_that};
use latens_nn::Plateau;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex};

/// Learns a hidden Markov model from shards.
///
/// The first round counts words, and bigrams if word clusters must be learned. Then a round is an iteration of
/// Baum–Welch, or a mini-batch that is split over the shards. Every shard must consist of whole files if the state
/// distribution is carried over sentence ends.
pub struct HmmShards;

/// The text of a shard.
pub struct HmmText {
    sentences: Sentences,
    /// The mini-batches of an epoch of the whole text, with a key that identifies them.
    batches: Mutex<Option<(u64, Arc<Vec<Vec<u32>>>)>>,
}

/// The progress of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Progress {
    /// Sizes of the text.
    tokens: u64,
    sentences: u64,
    /// Completed epochs or iterations.
    epoch: usize,
    /// Mini-batches of this epoch, and those that are done.
    n_batches: usize,
    batch: usize,
    n_steps: u64,
    /// Σ ln p of this epoch.
    log_prob: f64,
    train_perplexity: Option<f64>,
    plateau: Option<Plateau>,
}

impl Sharded for HmmShards {
    const KIND: &'static str = Hmm::KIND;
    type Params = HmmParams;
    type Text = HmmText;

    fn begin(
        params: &Valid<HmmParams>,
        _: &Lexicon,
        inputs: Arrays,
    ) -> Result<ShardState, FitError> {
        let resets = params.memory == Memory::Reset || params.by_em();
        check_that(resets, "memory", "`reset` for gradients of shards", "carry")?;
        let n_rounds = params.by_em().then_some(params.epochs as u64 + 1);
        let progress = to_json(&Progress::default());
        Ok(ShardState { n_rounds, progress, arrays: inputs, ..ShardState::default() })
    }

    fn read(lexicon: &Lexicon, part: &Part) -> Result<HmmText, ReadError> {
        Ok(HmmText { sentences: part.sentences(lexicon)?, batches: Mutex::new(None) })
    }

    fn statistics(
        job: &Job<'_, HmmParams>,
        shard: usize,
        text: &HmmText,
        _: Option<&Arrays>,
    ) -> Result<Computed, FitError> {
        let sums = match job.round {
            0 => space::survey(job, shard, &text.sentences)?,
            _ if job.params.by_em() => baum_welch::statistics(job, &text.sentences)?,
            _ => gradient::statistics(job, shard, text)?,
        };
        Ok(sums.into())
    }

    fn update(job: &Job<'_, HmmParams>, sums: Arrays) -> Result<Step, FitError> {
        match job.round {
            0 => space::begin(job, &sums),
            _ if job.params.by_em() => baum_welch::update(job, &sums),
            _ => gradient::update(job, &sums),
        }
    }
}

fn to_json(progress: &Progress) -> serde_json::Value {
    serde_json::to_value(progress).expect("progress consists of numbers")
}

/// An error for statistics or broadcasts that contradict themselves.
fn inconsistent(problem: &str) -> FitError {
    FitError::Step { action: "use the arrays of shards", source: problem.into() }
}
