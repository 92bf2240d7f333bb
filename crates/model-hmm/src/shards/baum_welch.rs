//! Baum–Welch: expected counts of shards.

use super::progress::{Progress, inconsistent, progress, to_json};
use super::space::{constants, space};
use crate::model::Hmm;
use crate::params::{HmmParams, Memory};
use crate::space::state_space::StateSpace;
use crate::steps::batches::Data;
use crate::steps::counts::{Counts, initial};
use crate::steps::estimator::{CpuEstimator, Estimator};
use crate::tables::probability_tables::Tables;
use latens_corpus::{Sentences, Vocab};
use latens_model::shards::{Arrays, Job, ShardState, Step};
use latens_model::{FitError, Params};
use serde_json::Map;

const LOG_PROB: &str = "log_prob";
const TABLES: [&str; 3] = ["start", "transition", "emission"];
/// Expected counts, those of transitions in blocks.
const COUNTS: [&str; 3] = ["counts.start", "counts.transition.blocks", "counts.emission"];

pub(super) fn begin(
    job: &Job<'_, HmmParams>,
    vocab: &Vocab,
    space: StateSpace,
    progress: Progress,
    state: ShardState,
) -> Result<Step, FitError> {
    let tables = initial(&job.params, &space, vocab, 0);
    next(job, space, tables, progress, state)
}

/// The state after an iteration, or the model after the last one. `state` has the arrays that do not change.
fn next(
    job: &Job<'_, HmmParams>,
    space: StateSpace,
    tables: Tables<f32>,
    progress: Progress,
    mut state: ShardState,
) -> Result<Step, FitError> {
    if progress.epoch < job.params.epochs {
        let values = [tables.start, tables.transition, tables.emission];
        for (name, values) in TABLES.iter().zip(values) {
            state.arrays = state.arrays.with(name, values);
        }
        state.progress = to_json(&progress);
        return Ok(Step::Next(state));
    }
    let mut facts = Map::new();
    facts.insert("epochs".into(), progress.epoch.into());
    facts.extend(progress.train_perplexity.map(|value| ("train_perplexity".into(), value.into())));
    facts.insert("tokens".into(), progress.tokens.into());
    facts.insert("sentences".into(), progress.sentences.into());
    facts.insert("shards".into(), job.n_shards.into());
    let params = job.params.for_text(progress.tokens as usize).validate()?;
    let lexicon = job.lexicon.clone();
    Ok(Step::Model(Box::new(Hmm::new(params, lexicon, facts, space, None, tables, None))))
}

fn estimator<'a>(
    job: &Job<'_, HmmParams>,
    space: &'a StateSpace,
) -> Result<CpuEstimator<'a>, FitError> {
    let n = space.n_states();
    let table = |name: &str, n: usize| -> Result<Vec<f32>, FitError> {
        let values = job.array::<f32>(name, n)?;
        match values.iter().all(|value| (0.0..=1.0).contains(value)) {
            true => Ok(values.to_vec()),
            false => Err(inconsistent("probabilities contain values outside [0, 1]")),
        }
    };
    let [start, transition, emission] = TABLES;
    let tables = Tables {
        k: space.k,
        start: table(start, n)?,
        transition: table(transition, n * n)?,
        emission: table(emission, space.n_slots() * space.k)?,
        ..Tables::default()
    };
    Ok(CpuEstimator::new(space, 0, tables))
}

/// The expected counts of a shard.
pub(super) fn statistics(job: &Job<'_, HmmParams>, text: &Sentences) -> Result<Arrays, FitError> {
    let space = space(job)?;
    if text.tokens().iter().any(|&word| space.slot(word).is_none()) {
        return Err(inconsistent("the text of the shard is not the one of the first round"));
    }
    let mut estimator = estimator(job, &space)?;
    let run_tokens = (job.params.memory == Memory::Carry).then_some(job.params.run_tokens);
    let data = Data { sentences: text, tags: None, run_tokens };
    for batch in data.sequences().in_batches(estimator.batch_tokens()) {
        estimator.expect(&batch)?;
    }
    let (counts, log_prob) = estimator.into_counts();
    let [start, transition, emission, _] = counts.into_parts();
    let mut sums = Arrays::new().with(LOG_PROB, vec![log_prob]);
    for (name, values) in COUNTS.iter().zip([start, transition, emission]) {
        sums = sums.with(name, values);
    }
    Ok(sums)
}

/// Maximizes.
pub(super) fn update(job: &Job<'_, HmmParams>, sums: &Arrays) -> Result<Step, FitError> {
    let space = space(job)?;
    let mut estimator = estimator(job, &space)?;
    let log_prob = sums.expect::<f64>(LOG_PROB, 1)?[0];
    if !log_prob.is_finite() {
        let needs = "sentences with a probability above 0";
        return Err(FitError::not_enough_data(needs, "one with probability 0"));
    }
    let n = space.n_states();
    let lengths = [n, n * n, estimator.n_emissions()];
    let mut parts: [Vec<f64>; 4] = Default::default();
    for (part, (name, n)) in parts.iter_mut().zip(COUNTS.iter().zip(lengths)) {
        *part = sums.expect::<f64>(name, n)?.to_vec();
        // Sums of counts below the number of tokens are far below this.
        if !part.iter().all(|count| (0.0..=1e30).contains(count)) {
            return Err(inconsistent("expected counts are negative or not finite"));
        }
    }
    estimator.set_counts(Counts::from_parts(space.k, parts));
    estimator.maximize(job.params.prior)?;
    let tables = estimator.tables()?;
    drop(estimator);
    let mut progress = progress(job)?;
    progress.epoch += 1;
    let perplexity = (-log_prob / progress.tokens.max(1) as f64).exp();
    progress.train_perplexity = Some(perplexity);
    let state = ShardState {
        n_rounds: job.state.n_rounds,
        metrics: [("train_perplexity".to_owned(), perplexity)].into(),
        arrays: constants(job)?,
        ..ShardState::default()
    };
    next(job, space, tables, progress, state)
}
