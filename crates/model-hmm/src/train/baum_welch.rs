//! Baum–Welch training: expectation maximization in closed form.

use crate::recursion::batch::Batch;
use crate::steps::counts::initial;
use crate::steps::estimator::{CpuEstimator, Estimator};
use crate::tables::probability_tables::Tables;
use crate::train::batches::Data;
use crate::train::device::cuda_estimator;
use crate::train::task::Task;
use latens_corpus::Vocab;
use latens_model::{
    Checkpoint, CheckpointError, Device, FitError, MakeCheckpoint, Progress, Watch,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::time::Instant;

/// The progress of training, without the probabilities.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct State {
    iteration: usize,
    best_iteration: Option<usize>,
    best_perplexity: Option<f64>,
    train_perplexity: Option<f64>,
    seconds: f64,
}

/// The result of training.
pub(crate) struct Fitted {
    pub(crate) tables: Tables<f32>,
    pub(crate) facts: Map<String, Value>,
}

/// Trains by Baum–Welch, from scratch or from a checkpoint.
pub(crate) fn fit(
    task: &Task<'_>,
    vocab: &Vocab,
    checkpoint: Option<&Checkpoint>,
    watch: &mut Watch,
) -> Result<Fitted, FitError> {
    let mut tables = initial(task.params, task.space, vocab, task.n_tags);
    let mut best: Option<Tables<f32>> = None;
    let mut state = State {
        iteration: 0,
        best_iteration: None,
        best_perplexity: None,
        train_perplexity: None,
        seconds: 0.0,
    };
    if let Some(checkpoint) = checkpoint {
        (state, best) = restore(task, checkpoint, &mut tables)?;
    }
    match task.device {
        Device::Cpu => {
            let estimator = CpuEstimator::new(task.space, task.n_tags, tables);
            estimate(task, estimator, state, best, watch)
        }
        Device::Cuda => estimate(task, cuda_estimator(task, &tables)?, state, best, watch),
    }
}

fn estimate<E: Estimator>(
    task: &Task<'_>,
    mut estimator: E,
    mut state: State,
    mut best: Option<Tables<f32>>,
    watch: &mut Watch,
) -> Result<Fitted, FitError> {
    let batches = batches(&task.train, estimator.states_per_token(), E::BATCH_VALUES);
    while state.iteration < task.params.epochs {
        let started = Instant::now();
        for (at, batch) in batches.iter().enumerate() {
            estimator.expect(batch)?;
            let done = (state.iteration * batches.len() + at) as u64;
            progress(task, done, &batches, &[], None).report(watch)?;
        }
        let log_prob = estimator.log_prob()?;
        if !log_prob.is_finite() {
            // Keeps the best earlier model on the validation set.
            if best.is_some() {
                break;
            }
            let (needs, has) = ("sentences with a probability above 0", "one without");
            return Err(FitError::not_enough_data(needs, has));
        }
        estimator.maximize(task.params.prior)?;
        state.seconds = started.elapsed().as_secs_f64();
        let train = (-log_prob / task.train.sentences.n_tokens().max(1) as f64).exp();
        state.iteration += 1;
        let mut metrics = vec![("train_perplexity", train)];
        if let Some(valid) = &task.valid {
            let log_prob = estimator.score(&valid.scored_batches())?;
            let perplexity = (-log_prob / valid.sentences.n_tokens().max(1) as f64).exp();
            // With an impossible sentence every model has infinite perplexity, which ranks none.
            let is_better = state.best_perplexity.is_none_or(|best| perplexity < best);
            if is_better && perplexity.is_finite() {
                state.best_perplexity = Some(perplexity);
                state.best_iteration = Some(state.iteration);
                best = Some(estimator.tables()?);
            }
            metrics.push(("valid_perplexity", perplexity));
        }
        // The facts describe the iteration whose model is kept.
        if state.best_iteration.is_none_or(|best| best == state.iteration) {
            state.train_perplexity = Some(train);
        }
        metrics.push(("seconds_per_epoch", state.seconds));
        let save = || Ok(checkpoint_of(task, &state, &estimator.tables()?, best.as_ref()));
        let done = (state.iteration * batches.len()) as u64;
        progress(task, done, &batches, &metrics, Some(&save)).report(watch)?;
    }
    let mut facts = Map::new();
    facts.insert("epochs".into(), json!(state.iteration));
    facts.insert("train_perplexity".into(), json!(state.train_perplexity));
    facts.insert("valid_perplexity".into(), json!(state.best_perplexity));
    facts.insert("best_epoch".into(), json!(state.best_iteration));
    facts.insert("seconds_per_epoch".into(), json!(state.seconds));
    facts.retain(|_, value| !value.is_null());
    let tables = best.map_or_else(|| estimator.tables(), Ok)?;
    Ok(Fitted { tables, facts })
}

/// Batches of sentences of similar length, with about `n_values` values: one per token and state.
fn batches<'a>(data: &Data<'a>, k: usize, n_values: usize) -> Vec<Batch<'a>> {
    data.sequences().in_batches(n_values / k.max(256))
}

fn progress<'a>(
    task: &Task<'_>,
    done: u64,
    batches: &[Batch<'_>],
    metrics: &'a [(&'static str, f64)],
    checkpoint: Option<&'a MakeCheckpoint<'a>>,
) -> Progress<'a> {
    let total = Some((task.params.epochs * batches.len()) as u64);
    let iteration = Some(done / batches.len().max(1) as u64);
    Progress { phase: "learn", done, total, unit: "batches", metrics, iteration, checkpoint }
}

const ARRAYS: [&str; 4] = ["start", "transition", "emission", "tags"];

fn arrays(tables: &Tables<f32>) -> [&Vec<f32>; 4] {
    [&tables.start, &tables.transition, &tables.emission, &tables.tags]
}

fn checkpoint_of(
    task: &Task<'_>,
    state: &State,
    tables: &Tables<f32>,
    best: Option<&Tables<f32>>,
) -> Checkpoint {
    let mut checkpoint = Checkpoint::new(task.kind, task.params, task.fingerprint, state);
    for (prefix, tables) in [("", Some(tables)), ("best.", best)] {
        for (name, values) in ARRAYS.iter().zip(tables.into_iter().flat_map(arrays)) {
            checkpoint = checkpoint.with_array(&format!("{prefix}{name}"), &[values.len()], values);
        }
    }
    checkpoint
}

fn restore(
    task: &Task<'_>,
    checkpoint: &Checkpoint,
    tables: &mut Tables<f32>,
) -> Result<(State, Option<Tables<f32>>), CheckpointError> {
    checkpoint.check_fits(task.kind, task.params, task.fingerprint, &[])?;
    let state: State = checkpoint.state()?;
    let read = |prefix: &str| -> Result<Tables<f32>, CheckpointError> {
        let mut read = Vec::new();
        for (name, like) in ARRAYS.iter().zip(arrays(tables)) {
            let values: Vec<f32> = checkpoint.array(&format!("{prefix}{name}"), &[like.len()])?;
            if !values.iter().all(|value| (0.0..=1.0).contains(value)) {
                return Err(CheckpointError::Invalid {
                    problem: "probabilities contain values outside [0, 1]",
                });
            }
            read.push(values);
        }
        let [start, transition, emission, tags] = read.try_into().expect("four arrays were read");
        Ok(Tables { k: tables.k, start, transition, emission, lists: None, tags, factors: None })
    };
    let best = state.best_iteration.map(|_| read("best.")).transpose()?;
    let current = read("")?;
    *tables = current;
    Ok((state, best))
}
