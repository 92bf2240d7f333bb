//! Learning a conditional random field from the shards of a tagged text: gradients add up.

mod progress;
mod tables;
mod survey;
mod gradient;
mod search;

use crate::tagging::fitted::tagger::FeatureTagger;
use crate::tagging::params::{Kind, Optimizer, TaggerParams};
use gradient::Prepared;
use latens_corpus::{Lexicon, ReadError, TaggedSentences};
use latens_model::shards::{Arrays, Computed, Job, Part, ShardInput, ShardState, Sharded, Step};
use latens_model::{FitError, ParamError, Valid, check_range, check_that};
use progress::{Progress, to_json};
use std::sync::Mutex;

/// Learns a conditional random field from shards by L-BFGS.
///
/// One round collects tags and words, one the attributes of words, and then every round computes the gradient at one
/// point. The driver keeps the state of the search. The number of rounds depends on the line searches.
///
/// Lines of a shard in memory are those of a file: a word, a tab and its tag per line, and an empty line after each
/// sentence. The input `column` is the column of the tags, counted from 0.
pub struct TaggerShards;

/// The tagged text of a shard.
pub struct TaggerText {
    text: TaggedSentences,
    /// The objective of the run that was computed last.
    prepared: Mutex<Option<Prepared>>,
}

/// Name of the additional input that is the column of the tags.
const COLUMN: &str = "column";

impl Sharded for TaggerShards {
    const KIND: &'static str = FeatureTagger::KIND;
    type Params = TaggerParams;
    type Text = TaggerText;
    const INPUTS: &'static [ShardInput] = &[ShardInput::TagColumn];

    fn check(params: &TaggerParams) -> Result<(), ParamError> {
        check_that(params.kind == Kind::Crf, "kind", "`crf` for shards", "local")?;
        let is_smooth = params.optimizer == Optimizer::Lbfgs;
        check_that(is_smooth, "optimizer", "`lbfgs` for shards", "perceptron")?;
        check_that(params.lexical, "lexical", "true for shards, which use no encoders", false)
    }

    fn begin(
        params: &Valid<TaggerParams>,
        _: &Lexicon,
        inputs: Arrays,
    ) -> Result<ShardState, FitError> {
        let column = match inputs.has(COLUMN) {
            true => inputs.expect::<u64>(COLUMN, 1)?[0] as usize,
            false => 1,
        };
        let must = "different from the column of the tags";
        check_range("column", column, 0..=1_000_000)?;
        check_that(params.pos_column != Some(column), "pos_column", must, column + 1)?;
        let progress = to_json(&Progress { column: column as u32, ..Progress::default() });
        Ok(ShardState { progress, ..ShardState::default() })
    }

    fn read(lexicon: &Lexicon, part: &Part) -> Result<TaggerText, ReadError> {
        let text = match part {
            Part::Files(inputs) => TaggedSentences::read(inputs)?,
            Part::Lines(lines) => in_memory(lines)?,
        };
        let text = text.normalized(&lexicon.preprocessing).into_owned();
        Ok(TaggerText { text, prepared: Mutex::new(None) })
    }

    fn statistics(
        job: &Job<'_, TaggerParams>,
        shard: usize,
        text: &TaggerText,
        _: Option<&Arrays>,
    ) -> Result<Computed, FitError> {
        let sums = match job.round {
            0 => survey::names(job, shard, &text.text)?,
            1 => survey::attributes(job, shard, &text.text)?,
            _ => gradient::gradient(job, shard, &text.text, &text.prepared)?,
        };
        Ok(sums.into())
    }

    fn merge(a: Arrays, b: Arrays) -> Result<Arrays, FitError> {
        survey::merge(a, b)
    }

    fn update(job: &Job<'_, TaggerParams>, sums: Arrays) -> Result<Step, FitError> {
        match job.round {
            0 => survey::tags(job, &sums),
            1 => survey::layout(job, &sums),
            _ => search::update(job, &sums),
        }
    }
}

/// Reads lines of a word and its tag.
fn in_memory(lines: &[String]) -> Result<TaggedSentences, ReadError> {
    let sentences = lines.split(|line| line.is_empty());
    // A line without a tab has an empty tag, which is an error.
    let rows = sentences.map(|lines| lines.iter().map(|l| l.split_once('\t').unwrap_or((l, ""))));
    TaggedSentences::from_rows(rows)
}
