//! Learning from the shards of a text: expected counts and gradients add up.

mod progress;
mod space;
mod baum_welch;
mod gradient;
mod survey;

use crate::model::Hmm;
use crate::params::{HmmParams, Memory};
use latens_corpus::{Lexicon, ReadError};
use latens_model::shards::{Arrays, Computed, Job, Part, ShardInput, ShardState, Sharded, Step};
use latens_model::{FitError, ParamError, Valid, check_that};
pub use progress::HmmText;
use progress::{Progress, inconsistent, progress, to_json};

/// Learns a hidden Markov model from shards.
///
/// The first round counts words, and bigrams if word clusters must be learned. Then a round is an iteration of
/// Baum–Welch, or a mini-batch that is split over the shards. Every shard must consist of whole files if the state
/// distribution is carried over sentence ends.
pub struct HmmShards;

impl Sharded for HmmShards {
    const KIND: &'static str = Hmm::KIND;
    type Params = HmmParams;
    type Text = HmmText;
    const INPUTS: &'static [ShardInput] = &[ShardInput::Vocab, ShardInput::WordClusters];

    fn check(params: &HmmParams) -> Result<(), ParamError> {
        let resets = params.memory == Memory::Reset || params.by_em();
        check_that(resets, "memory", "`reset` for gradients of shards", "carry")
    }

    fn begin(
        params: &Valid<HmmParams>,
        _: &Lexicon,
        inputs: Arrays,
    ) -> Result<ShardState, FitError> {
        let n_rounds = params.by_em().then_some(params.epochs as u64 + 1);
        let progress = to_json(&Progress::default());
        Ok(ShardState { n_rounds, progress, arrays: inputs, ..ShardState::default() })
    }

    fn read(lexicon: &Lexicon, part: &Part) -> Result<HmmText, ReadError> {
        Ok(HmmText::new(part.sentences(lexicon)?))
    }

    fn statistics(
        job: &Job<'_, HmmParams>,
        shard: usize,
        text: &HmmText,
        _: Option<&Arrays>,
    ) -> Result<Computed, FitError> {
        if job.round > 0 {
            let Progress { shard_tokens, .. } = progress(job)?;
            if shard_tokens.get(shard) != Some(&(text.sentences.n_tokens() as u64)) {
                return Err(inconsistent("its text is not the one of the first round"));
            }
        }
        let sums = match job.round {
            0 => survey::survey(job, shard, &text.sentences)?,
            _ if job.params.by_em() => baum_welch::statistics(job, &text.sentences)?,
            _ => gradient::statistics(job, shard, text)?,
        };
        Ok(sums.into())
    }

    fn update(job: &Job<'_, HmmParams>, sums: Arrays) -> Result<Step, FitError> {
        match job.round {
            0 => survey::begin(job, &sums),
            _ if job.params.by_em() => baum_welch::update(job, &sums),
            _ => gradient::update(job, &sums),
        }
    }
}
