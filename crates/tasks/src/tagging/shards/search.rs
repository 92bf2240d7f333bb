//! L-BFGS on the driver. A round gives the gradient at one point, and a step needs one or more points.
//!
//! A step is made again from its first point whenever a gradient arrives: the gradients that are known lead to the next
//! point, as in one process. Only the driver needs the state of the search.

use super::gradient::{ATTRIBUTES, GRADIENT, LOSS, OFFSETS, TAGS, TRANSITIONS, WEIGHTS, layout};
use super::progress::{Progress, inconsistent, to_json};
use super::tables::{Counted, read_strings, write_strings};
use crate::tagging::fitted::direct::Direct;
use crate::tagging::fitted::tag_names::TagNames;
use crate::tagging::fitted::tagger::FeatureTagger;
use crate::tagging::learn::fit::lexicon_of;
use crate::tagging::learn::objective::penalty;
use crate::tagging::learn::optimize::facts_of;
use crate::tagging::params::TaggerParams;
use crate::tagging::weights::fitted::Weights;
use latens_math::lbfgs::{Lbfgs, LbfgsParams, LbfgsState, Outcome, Pair, Unknown};
use latens_model::FitError;
use latens_model::shards::{Arrays, Job, ShardState, Step};
use serde_json::json;
use std::sync::OnceLock;

/// Names of arrays that only the driver needs.
pub(super) const WORDS: &str = "driver.words";
const POINT: &str = "driver.point";
const POINT_GRADIENT: &str = "driver.gradient";
const VALUES: &str = "driver.values";
const TRIAL_VALUES: &str = "driver.trial_values";

/// A line search gives up after fewer points than this.
const MAX_TRIALS: usize = 100;

/// The value and the gradient at a point of the current step.
type Trial = (f64, Vec<f64>);

/// Takes a gradient. Asks for the next one, or makes the model.
pub(super) fn update(job: &Job<'_, TaggerParams>, sums: &Arrays) -> Result<Step, FitError> {
    let n = layout(job)?.n_weights();
    let weights = job.array::<f64>(WEIGHTS, n)?.to_vec();
    let mut gradient = sums.expect::<f64>(GRADIENT, n)?.to_vec();
    let loss = sums.expect::<f64>(LOSS, 1)?[0];
    let value = loss + penalty(job.params.l2, &weights, &mut gradient);
    let params = LbfgsParams { l1: job.params.l1, ..LbfgsParams::default() };
    let mut trials: Vec<Trial> = Vec::new();
    let mut search = if job.state.arrays.has(POINT) {
        trials = read_trials(job, n)?;
        trials.push((value, gradient));
        Lbfgs::resume(params, read_search(job, n)?)
    } else {
        Lbfgs::start(params, weights, &mut |_: &[f64], out: &mut [f64]| {
            out.copy_from_slice(&gradient);
            value
        })
    };
    let mut outcome = Outcome::Improved;
    while outcome == Outcome::Improved && search.state().n_steps < job.params.n_iterations as u64 {
        let (mut known, mut asked) = (trials.iter(), None);
        let step = search.try_step(&mut |x: &[f64], out: &mut [f64]| match known.next() {
            Some((value, gradient)) => {
                out.copy_from_slice(gradient);
                Ok(*value)
            }
            None => {
                asked = Some(x.to_vec());
                Err(Unknown)
            }
        });
        match (step, asked) {
            (Ok(found), _) => outcome = found,
            (Err(Unknown), Some(point)) => {
                return Ok(Step::Next(next(job, &search, &trials, point)?));
            }
            (Err(Unknown), None) => unreachable!("only an unknown point stops a step"),
        }
        trials.clear();
    }
    finish(job, search, outcome)
}

/// The state before the gradient at `point` is known.
fn next(
    job: &Job<'_, TaggerParams>,
    search: &Lbfgs,
    trials: &[Trial],
    point: Vec<f64>,
) -> Result<ShardState, FitError> {
    let LbfgsState { x, gradient, pairs, values, n_steps } = search.state();
    let mut progress: Progress = job.progress()?;
    (progress.n_pairs, progress.n_steps, progress.n_trials) = (pairs.len(), *n_steps, trials.len());
    let known = &job.state.arrays;
    let words = Counted::read(known, WORDS)?.write(Arrays::new(), WORDS);
    let mut arrays = write_strings(&read_strings(known, ATTRIBUTES)?, words, ATTRIBUTES)
        .with(OFFSETS, known.expect_any::<u64>(OFFSETS)?.clone())
        .with(TAGS, known.expect_any::<u16>(TAGS)?.clone())
        .with(TRANSITIONS, known.expect_any::<u8>(TRANSITIONS)?.clone())
        .with(WEIGHTS, point)
        .with(POINT, x.clone())
        .with(POINT_GRADIENT, gradient.clone())
        .with(VALUES, values.iter().copied().collect::<Vec<f64>>())
        .with(TRIAL_VALUES, trials.iter().map(|trial| trial.0).collect::<Vec<f64>>());
    for (i, Pair { step, change }) in pairs.iter().enumerate() {
        arrays = arrays.with(&step_name(i), step.clone()).with(&change_name(i), change.clone());
    }
    for (i, (_, gradient)) in trials.iter().enumerate() {
        arrays = arrays.with(&trial_name(i), gradient.clone());
    }
    let metrics = [("loss", search.value()), ("gradient_norm", search.gradient_norm())];
    let metrics = metrics.into_iter().filter(|(_, value)| value.is_finite());
    let metrics = metrics.map(|(name, value)| (name.to_owned(), value)).collect();
    Ok(ShardState { n_rounds: None, progress: to_json(&progress), metrics, arrays })
}

fn step_name(i: usize) -> String {
    format!("driver.step.{i}")
}

fn change_name(i: usize) -> String {
    format!("driver.change.{i}")
}

fn trial_name(i: usize) -> String {
    format!("driver.trial.{i}")
}

fn read_trials(job: &Job<'_, TaggerParams>, n: usize) -> Result<Vec<Trial>, FitError> {
    let Progress { n_trials, .. } = job.progress()?;
    if n_trials > MAX_TRIALS {
        return Err(inconsistent("a step has too many points"));
    }
    let values = job.array::<f64>(TRIAL_VALUES, n_trials)?;
    let trial =
        |(i, &value): (usize, &f64)| Ok((value, job.array::<f64>(&trial_name(i), n)?.to_vec()));
    values.iter().enumerate().map(trial).collect()
}

fn read_search(job: &Job<'_, TaggerParams>, n: usize) -> Result<LbfgsState, FitError> {
    let Progress { n_pairs, n_steps, .. } = job.progress()?;
    let values = job.state.arrays.expect_any::<f64>(VALUES)?;
    if values.is_empty() || n_pairs > LbfgsParams::default().memory {
        return Err(inconsistent("the state of L-BFGS is invalid"));
    }
    let pair = |i: usize| -> Result<Pair, FitError> {
        let step = job.array::<f64>(&step_name(i), n)?.to_vec();
        Ok(Pair { step, change: job.array::<f64>(&change_name(i), n)?.to_vec() })
    };
    Ok(LbfgsState {
        x: job.array::<f64>(POINT, n)?.to_vec(),
        gradient: job.array::<f64>(POINT_GRADIENT, n)?.to_vec(),
        pairs: (0..n_pairs).map(pair).collect::<Result<_, _>>()?,
        values: values.iter().copied().collect(),
        n_steps,
    })
}

fn finish(job: &Job<'_, TaggerParams>, search: Lbfgs, outcome: Outcome) -> Result<Step, FitError> {
    let Progress { column, sentences, shard_tokens, tags, are_spans, .. } = job.progress()?;
    let learned = search.x();
    let is_finite = learned.iter().all(|&weight| (weight as f32).is_finite());
    if !is_finite || !search.value().is_finite() {
        let epoch = search.state().n_steps as usize;
        return Err(FitError::Diverged { epoch, lower: "scale" });
    }
    let attributes = read_strings(&job.state.arrays, ATTRIBUTES)?;
    let weights = Weights::of(learned, &layout(job)?, &attributes);
    let mut facts = facts_of(&search, outcome);
    // A forged broadcast may contain any numbers.
    let n_tokens = shard_tokens.iter().fold(0, |sum: u64, &n| sum.saturating_add(n));
    facts.insert("tokens".into(), json!(n_tokens));
    facts.insert("sentences".into(), json!(sentences));
    facts.insert("tags".into(), json!(tags.len()));
    facts.insert("shards".into(), json!(job.n_shards));
    facts.insert("tag_column".into(), json!(u64::from(column) + 1));
    let Counted { strings, counts } = Counted::read(&job.state.arrays, WORDS)?;
    let tagger = FeatureTagger {
        params: job.params.clone(),
        lexicon: lexicon_of(job.lexicon.preprocessing, &strings, &counts, sentences),
        facts,
        tags: TagNames::new(tags, are_spans),
        weights,
        encoders: Vec::new(),
        direct: Direct::default(),
        word_scores: OnceLock::new(),
    };
    Ok(Step::Model(Box::new(tagger)))
}
